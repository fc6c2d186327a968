#pragma once

#include <cstdint>

namespace gyre::kernels::cpu {

/// `count` floats of the calling thread, 64-byte aligned, kept between calls; contents are undefined. The
/// next call on the same thread takes the same memory.
float* thread_scratch(std::int64_t count);

inline std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace gyre::kernels::cpu
