#pragma once

#include <vector>

#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"

namespace gyre::test {

/// Takes what memory a CUDA device has left, but for `rest` bytes and less than a kilobyte.
class Balloon {
 public:
  explicit Balloon(Device device, std::int64_t rest = 0) : device_(device) {
    const Tensor kept = Tensor::empty({rest}, DType::u8, device);
    for (std::int64_t bytes = std::int64_t{1} << 40; bytes >= 512;) {
      try {
        blocks_.push_back(Tensor::empty({bytes}, DType::u8, device));
      } catch (const OutOfMemoryError&) {
        bytes /= 2;
      }
    }
  }
  ~Balloon() {
    blocks_.clear();
    release_cached_memory(device_);
  }
  Balloon(const Balloon&) = delete;
  Balloon& operator=(const Balloon&) = delete;

 private:
  Device device_;
  std::vector<Tensor> blocks_;
};

}  // namespace gyre::test
