#pragma once

#include "core/dtype.h"
#include "core/shape.h"

namespace gyre::cuda {

/// detail::strided_copy between arrays on device `index`, in the order of its compute stream.
void strided_copy(int index, const Shape& shape, void* to, DType to_dtype, const Shape& to_strides,
                  const void* from, DType from_dtype, const Shape& from_strides);

/// Every element becomes `value`, converted as by strided_copy.
void strided_fill(int index, const Shape& shape, void* to, DType dtype, const Shape& strides, double value);

}  // namespace gyre::cuda
