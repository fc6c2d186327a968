#pragma once

#include "core/tensor.h"
#include "kernels/cpu/gemm_shape.h"

namespace gyre::kernels::cuda {

/// y = a·b for the first elements of a and b, which lie as `shape` says; y dense and not empty.
void matmul(const cpu::GemmShape& shape, const Tensor& a, const Tensor& b, Tensor& y);

}  // namespace gyre::kernels::cuda
