#pragma once

#include "core/tensor.h"

namespace gyre::kernels::cpu {

/// y [..., M, N] = a [..., M, K]·b, y dense and not empty; b has the leading dimensions of a or none. Any
/// strides.
void matmul(const Tensor& a, const Tensor& b, Tensor& y);

}  // namespace gyre::kernels::cpu
