#include "kernels/cuda/matmul.h"

#include "kernels/cuda/blas.h"

namespace gyre::kernels::cuda {

void matmul(const cpu::GemmShape& shape, const Tensor& a, const Tensor& b, Tensor& y) {
  gemm(y.device(), y.dtype(), shape, a.raw_data(), b.raw_data(), y.raw_mutable_data());
}

}  // namespace gyre::kernels::cuda
