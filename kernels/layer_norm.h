#pragma once

#include "core/tensor.h"

namespace gyre::kernels {

/// y [N, C·T] as x; mean and rstd = (variance + eps)^-1/2 per row [N].
struct LayerNormResult {
  Tensor y, mean, rstd;
};
/// x [N, C·T], gain and bias [C], each repeated over T = `repeat` consecutive channels:
/// y = (x - mean)·rstd·gain + bias with the biased variance of the whole row. f32 or f64; on CUDA also f16 or
/// bf16, with gain, bias and statistics in f32.
LayerNormResult layer_norm_forward(const Tensor& x, const Tensor& gain, const Tensor& bias, int repeat,
                                   double eps);

/// Gradients of x [N, C·T], gain [C] and bias [C].
struct LayerNormGrads {
  Tensor x, gain, bias;
};
/// `mean` and `rstd` [N] come from the forward; `grad` has the shape of x.
LayerNormGrads layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean,
                                   const Tensor& rstd, const Tensor& grad, int repeat);

}  // namespace gyre::kernels
