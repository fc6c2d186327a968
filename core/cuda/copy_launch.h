#pragma once

#include <cstdint>

namespace gyre::cuda {

/// Division by a fixed number for dividends below 2^31: by a product and a shift.
struct Divisor {
  std::uint32_t value = 1, factor = 1, shift = 0;
};

constexpr Divisor divisor_of(std::uint32_t value) {
  std::uint32_t shift = 0;
  while ((std::uint64_t{1} << shift) < value) ++shift;
  const std::uint64_t excess = (std::uint64_t{1} << shift) - value;
  return {value, static_cast<std::uint32_t>((excess << 32) / value + 1), shift};
}

/// The dimensions of a copy from outer to inner, at most 2^30 elements; strides in elements.
struct CopyLayout {
  static constexpr int max_rank = 8;
  int rank = 0;
  std::uint32_t count = 1;
  Divisor extent[max_rank];
  std::int64_t to[max_rank] = {}, from[max_rank] = {};
};

/// Up to 16 bytes, the first ones of a filled element.
struct Pattern {
  std::uint64_t words[2] = {0, 0};
};

// Element types are numbered as DType.

/// Elements of 1, 2, 4, 8 or 16 bytes, aligned to their size.
void launch_copy(const CopyLayout& layout, int element_bytes, void* to, const void* from, void* stream);
/// The same where the source is denser along the last dimension but one; elements of up to 8 bytes.
void launch_transpose(const CopyLayout& layout, int element_bytes, void* to, const void* from, void* stream);
void launch_convert(const CopyLayout& layout, void* to, int to_type, const void* from, int from_type,
                    void* stream);
/// Elements of 1, 2, 4, 8 or 16 bytes.
void launch_fill(const CopyLayout& layout, int element_bytes, void* to, const Pattern& value, void* stream);

}  // namespace gyre::cuda
