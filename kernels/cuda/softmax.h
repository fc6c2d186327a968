#pragma once

#include "core/tensor.h"

namespace gyre::kernels::cuda {

/// Dense x, y of one shape; rows run over the last dimension.
void softmax_forward(const Tensor& x, Tensor& y);
/// Dense y, grad, result of one shape.
void softmax_backward(const Tensor& y, const Tensor& grad, Tensor& result);

}  // namespace gyre::kernels::cuda
