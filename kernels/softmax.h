#pragma once

#include "core/tensor.h"

namespace gyre::kernels {

/// Softmax over the last dimension, which must exist; finite for any finite x. f32 or f64.
Tensor softmax_forward(const Tensor& x);
/// y = softmax(x) and grad of equal shape → y ∘ (grad - Σ grad ∘ y).
Tensor softmax_backward(const Tensor& y, const Tensor& grad);

}  // namespace gyre::kernels
