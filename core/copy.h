#pragma once

#include <array>
#include <cstdint>

#include "core/dtype.h"
#include "core/shape.h"

namespace gyre::detail {

/// One dimension of a copy, with the strides of both sides in elements.
struct CopyDim {
  std::int64_t extent = 1;
  std::int64_t to = 0, from = 0;
};

/// Dimensions from outer to inner.
struct CopyDims {
  std::array<CopyDim, Shape::max_rank> dims;
  int rank = 0;

  CopyDim& operator[](int i) { return dims[static_cast<std::size_t>(i)]; }
  const CopyDim& operator[](int i) const { return dims[static_cast<std::size_t>(i)]; }
};

/// In the order of the destination, without extents of 1; neighbours that one stride walks through on both
/// sides are one.
CopyDims merge_dims(const Shape& shape, const Shape& to, const Shape& from);

/// Element-wise copy between strided arrays of one shape; strides in elements, 0 allowed in the source.
/// Floating values become integers by truncation, out-of-range ones saturate, NaN gives 0. f16 and
/// bf16 widen exactly; what is narrowed to them becomes f32 first and rounds to nearest, ties to even.
void strided_copy(const Shape& shape, void* to, DType to_dtype, const Shape& to_strides, const void* from,
                  DType from_dtype, const Shape& from_strides);

}  // namespace gyre::detail
