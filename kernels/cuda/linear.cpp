#include "kernels/cuda/linear.h"

#include "kernels/cuda/blas.h"

namespace gyre::kernels::cuda {

void linear_forward(const Tensor& x, const Tensor& w, const Tensor& b, cpu::LinearPacks*, Tensor& y) {
  const std::int64_t m = w.size(0), k = w.size(1), n = y.numel() / m;
  GemmOptions options;
  if (b.defined()) options.bias = b.raw_data();
  gemm(y.device(), y.dtype(), {.m = n, .n = m, .k = k, .a_row = k, .b_row = 1, .b_col = k, .c_row = m},
       x.raw_data(), w.raw_data(), y.raw_mutable_data(), options);
}

void linear_grad_x(const Tensor& w, const Tensor& grad, cpu::LinearPacks*, Tensor& dx) {
  const std::int64_t m = w.size(0), k = w.size(1), n = dx.numel() / k;
  gemm(dx.device(), dx.dtype(), {.m = n, .n = k, .k = m, .a_row = m, .b_row = k, .c_row = k}, grad.raw_data(),
       w.raw_data(), dx.raw_mutable_data());
}

void linear_grad_w(const Tensor& x, const Tensor& grad, Tensor& dw) {
  const std::int64_t m = dw.size(0), k = dw.size(1), n = x.numel() / k;
  GemmOptions options;
  options.f32_result = true;
  gemm(dw.device(), x.dtype(), {.m = m, .n = k, .k = n, .a_row = 1, .a_col = m, .b_row = k, .c_row = k},
       grad.raw_data(), x.raw_data(), dw.raw_mutable_data(), options);
}

}  // namespace gyre::kernels::cuda
