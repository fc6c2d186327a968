#pragma once

#include "core/tensor.h"

namespace gyre::kernels::cpu {
class LinearPacks;
}

namespace gyre::kernels::cuda {

// Dense tensors as in kernels/linear.h, results not empty. Packed weights are the CPU's: not read.

void linear_forward(const Tensor& x, const Tensor& w, const Tensor& b, cpu::LinearPacks* packs, Tensor& y);
void linear_grad_x(const Tensor& w, const Tensor& grad, cpu::LinearPacks* packs, Tensor& dx);
void linear_grad_w(const Tensor& x, const Tensor& grad, Tensor& dw);

}  // namespace gyre::kernels::cuda
