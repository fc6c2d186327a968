#include "kernels/cpu/matmul.h"

#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/gemm_f64.h"

namespace gyre::kernels::cpu {

void matmul(const GemmShape& shape, const Tensor& a, const Tensor& b, Tensor& y) {
  if (y.dtype() == DType::f32) {
    gemm_f32(shape, a.data<float>(), b.data<float>(), y.mutable_data<float>());
  } else {
    gemm_f64(shape, a.data<double>(), b.data<double>(), y.mutable_data<double>());
  }
}

}  // namespace gyre::kernels::cpu
