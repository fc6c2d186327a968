#pragma once

#include "core/dtype.h"
#include "core/shape.h"

namespace gyre::detail {

/// Element-wise copy between strided arrays of one shape; strides in elements, 0 allowed in the source.
/// Floating values become integers by truncation, out-of-range ones saturate, NaN gives 0. f16 and
/// bf16 widen exactly; DTypeError where another type would be narrowed to them.
void strided_copy(const Shape& shape, void* to, DType to_dtype, const Shape& to_strides, const void* from,
                  DType from_dtype, const Shape& from_strides);

}  // namespace gyre::detail
