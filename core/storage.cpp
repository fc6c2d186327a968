#include "core/storage.h"

#include <utility>

#include "core/cuda/runtime.h"
#include "core/error.h"
#include "core/memory.h"

namespace gyre {

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed) + 1;
}

Storage::Storage(std::size_t bytes, Device device)
    : bytes_(bytes), device_(device), version_(next_version()) {
  if (device.is_cuda()) {
    kind_ = Kind::cuda;
    data_ = cuda::allocate(bytes, device.index, cuda::compute_stream(device.index));
  } else {
    data_ = pool_allocate(bytes);
  }
}

Storage::Storage(std::size_t bytes, HostMemory memory)
    : data_(memory == HostMemory::pinned ? cuda::pinned_allocate(bytes) : pool_allocate(bytes)),
      bytes_(bytes),
      kind_(memory == HostMemory::pinned ? Kind::pinned : Kind::plain),
      version_(next_version()) {}

Storage::Storage(std::size_t bytes, Device device, void* stream)
    : data_(cuda::allocate(bytes, device.index, stream)),
      bytes_(bytes),
      device_(device),
      kind_(Kind::cuda),
      version_(next_version()) {}

Storage::Storage(const void* data, std::size_t bytes, std::shared_ptr<const void> owner)
    : data_(const_cast<void*>(data)),
      bytes_(bytes),
      owner_(std::move(owner)),
      kind_(Kind::foreign),
      version_(next_version()) {}

Storage::~Storage() {
  switch (kind_) {
    case Kind::plain: pool_free(data_, bytes_); break;
    case Kind::pinned: cuda::pinned_deallocate(data_, bytes_); break;
    case Kind::cuda: cuda::deallocate(data_, bytes_, device_.index); break;
    case Kind::foreign: break;
  }
}

void* Storage::mutable_data() {
  require(kind_ != Kind::foreign, "a read-only storage of {} bytes cannot be written: clone the tensor first",
          bytes_);
  version_.store(next_version(), std::memory_order_release);
  return data_;
}

}  // namespace gyre
