#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory.h"

namespace gyre::kernels::cpu {

/// Uninitialised memory from the tensor pool while alive.
template <class T>
class ScratchBuffer {
 public:
  explicit ScratchBuffer(std::int64_t count)
      : bytes_(static_cast<std::size_t>(count) * sizeof(T)), data_(static_cast<T*>(pool_allocate(bytes_))) {}
  ~ScratchBuffer() { pool_free(data_, bytes_); }
  ScratchBuffer(const ScratchBuffer&) = delete;
  ScratchBuffer& operator=(const ScratchBuffer&) = delete;
  T* data() const { return data_; }

 private:
  std::size_t bytes_;
  T* data_;
};

inline std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace gyre::kernels::cpu
