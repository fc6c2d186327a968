#pragma once

#include "core/tensor.h"

namespace gyre::kernels {

/// Matrix product a·b → [..., M, N] of a [..., M, K] and b [..., K, N] (each read transposed in its last two
/// dimensions if so flagged); f32 or f64. The leading dimensions are equal, or b has rank 2 and serves every
/// matrix of a. Any strides; K = 0 gives zeros. Throws ShapeError, DTypeError or DeviceError naming both
/// tensors.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);

}  // namespace gyre::kernels
