#include "core/storage.h"

#include <utility>

#include "core/error.h"
#include "core/memory.h"

namespace gyre {

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed) + 1;
}

Storage::Storage(std::size_t bytes, Device device)
    : bytes_(bytes), device_(device), version_(next_version()) {
  require<DeviceError>(device.is_cpu(), "no CUDA storage in this build: {} bytes wanted on {}", bytes,
                       device.str());
  data_ = pool_allocate(bytes);
}

Storage::Storage(const void* data, std::size_t bytes, std::shared_ptr<const void> owner)
    : data_(const_cast<void*>(data)),
      bytes_(bytes),
      owner_(std::move(owner)),
      read_only_(true),
      version_(next_version()) {}

Storage::~Storage() {
  if (!read_only_) pool_free(data_, bytes_);
}

void* Storage::mutable_data() {
  require(!read_only_, "a read-only storage of {} bytes cannot be written: clone the tensor first", bytes_);
  version_.store(next_version(), std::memory_order_release);
  return data_;
}

}  // namespace gyre
