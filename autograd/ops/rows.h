#pragma once

#include "core/tensor.h"

namespace gyre {

/// Product of all extents but the last: how many vectors `shape` holds. Needs rank ≥ 1.
inline std::int64_t row_count(const Shape& shape) {
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  return rows;
}

/// `shape` with `last` as its last extent.
inline Shape with_last(Shape shape, std::int64_t last) {
  shape[-1] = last;
  return shape;
}

/// [..., K] → [rows, K]; a view where strides allow.
inline Tensor as_rows(const Tensor& x) { return x.reshape({row_count(x.shape()), x.size(-1)}); }

}  // namespace gyre
