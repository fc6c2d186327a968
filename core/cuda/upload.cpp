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
  std::shared_ptr<const Event> done;
  Tensor source;
};

void keep_until_done(Pending&& latest) {
  static std::mutex mutex;
  // Never destroyed: the driver may be gone before statics are.
  static auto& pending = *std::make_unique<std::vector<Pending>>().release();
  const std::lock_guard lock(mutex);
  std::erase_if(pending, [](const Pending& copy) { return copy.done->done(); });
  pending.push_back(std::move(latest));
}

}  // namespace

Upload::Upload(const Tensor& host, Device device) {
  require<DeviceError>(host.device().is_cpu(), "upload takes a tensor on the CPU, not {}", host);
  Tensor source = host.contiguous();
  const auto bytes = static_cast<std::size_t>(source.numel()) * size_of(source.dtype());
  void* const stream = copy_stream(device.index);
  auto done = std::make_shared<Event>(device.index);
  auto storage = std::make_shared<Storage>(bytes, device, stream);
  result_ = Tensor::view_of(std::move(storage), source.shape(), source.strides(), source.dtype());
  copy_async(result_.raw_mutable_data(), source.raw_data(), bytes, stream);
  done->record(stream);
  done_ = std::move(done);
  keep_until_done({done_, std::move(source)});
}

Upload::~Upload() {
  if (!done_) return;
  // Memory goes back in the order of the compute stream, which must not get ahead of the copy.
  try {
    take();
  } catch (const DeviceError&) {
    // The device is lost, and its memory with it.
  }
}

Tensor Upload::take() {
  require(done_ != nullptr, "an upload is taken once");
  done_->hold(compute_stream(result_.device().index));
  done_.reset();
  return std::move(result_);
}

Tensor upload(const Tensor& host, Device device) {
  return device.is_cpu() ? host.to(device) : Upload(host, device).take();
}

}  // namespace gyre::cuda
