#include "core/cuda/upload.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/cuda/runtime.h"

namespace gyre::cuda {
namespace {

/// A copy under way, and the memory that it reads.
struct Pending {
  Event done;
  Tensor source;
};

void keep_until_done(Pending&& latest) {
  static std::mutex mutex;
  // Never destroyed: the driver may be gone before statics are.
  static auto& pending = *std::make_unique<std::vector<Pending>>().release();
  const std::lock_guard lock(mutex);
  std::erase_if(pending, [](const Pending& copy) { return copy.done.done(); });
  pending.push_back(std::move(latest));
}

}  // namespace

Tensor upload(const Tensor& host, Device device) {
  if (device.is_cpu()) return host.to(device);
  require<DeviceError>(host.device().is_cpu(), "upload takes a tensor on the CPU, not {}", host);
  Tensor source = host.contiguous();
  const auto bytes = static_cast<std::size_t>(source.numel()) * size_of(source.dtype());
  void* const stream = copy_stream(device.index);
  auto storage = std::make_shared<Storage>(bytes, device, stream);
  Tensor result = Tensor::view_of(std::move(storage), source.shape(), source.strides(), source.dtype());
  copy_async(result.raw_mutable_data(), source.raw_data(), bytes, stream);
  Event done(device.index);
  done.record(stream);
  done.hold(compute_stream(device.index));
  keep_until_done({std::move(done), std::move(source)});
  return result;
}

}  // namespace gyre::cuda
