#pragma once

#include "core/tensor.h"
#include "kernels/cpu/gemm_shape.h"

namespace gyre::kernels::cpu {

/// y = a·b for the first elements of a and b, which lie as `shape` says; y dense and not empty.
void matmul(const GemmShape& shape, const Tensor& a, const Tensor& b, Tensor& y);

}  // namespace gyre::kernels::cpu
