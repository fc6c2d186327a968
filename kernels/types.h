#pragma once

#include <string_view>

#include "core/tensor.h"

namespace gyre::kernels {

/// Throws DTypeError, naming `what`, unless x is of f32 or f64, or on CUDA of f16 or bf16.
void require_computable(const Tensor& x, std::string_view what);
/// Throws DTypeError, naming `what`, unless x is of `dtype`.
void require_dtype(const Tensor& x, DType dtype, std::string_view what);
/// The type that sums over many elements are kept in: f64 for f64, else f32.
DType wide_type(DType dtype);

}  // namespace gyre::kernels
