#pragma once

#include <optional>

#include "core/tensor.h"

namespace gyre::kernels {

// Rows x [N, C·T]; gain and bias [C], each repeated over T = `repeat` consecutive channels. f32 or f64, on
// CUDA also f16 or bf16; gain, bias and statistics are f32 beside 16 bits. Results that carry a type may be
// f16 or bf16 beside f32 on CUDA. Errors: ShapeError, DTypeError, DeviceError, ValueError.

/// y as x; mean and rstd = (variance + eps)^-1/2 per row [N].
struct LayerNormResult {
  Tensor y, mean, rstd;
};
/// y = (x - mean)·rstd·gain + bias with the biased variance of the whole row, in type `result`: by default
/// that of x.
LayerNormResult layer_norm_forward(const Tensor& x, const Tensor& gain, const Tensor& bias, int repeat,
                                   double eps, std::optional<DType> result = {});

/// Gradients of x [N, C·T], gain [C] and bias [C].
struct LayerNormGrads {
  Tensor x, gain, bias;
};
/// `mean` and `rstd` [N] come from the forward; `grad` has the shape and type of y.
LayerNormGrads layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean,
                                   const Tensor& rstd, const Tensor& grad, int repeat);

/// sum = x + r as x, and y, mean and rstd of its norm.
struct AddLayerNormResult {
  Tensor sum, y, mean, rstd;
};
/// A residual connection and the norm behind it in one pass. r has the shape of x, and its type or on CUDA
/// f16 or bf16 beside f32, but not one for r and the other for y.
AddLayerNormResult add_layer_norm_forward(const Tensor& x, const Tensor& r, const Tensor& gain,
                                          const Tensor& bias, int repeat, double eps,
                                          std::optional<DType> result = {});

/// Gradients of x and r, the same numbers in the type of each: one tensor if they agree.
struct AddLayerNormGrads {
  Tensor x, r, gain, bias;
};
/// `grad` of y, and `grad_sum` of the sum, which is undefined if nothing else read it. `residual`: type of r.
AddLayerNormGrads add_layer_norm_backward(const Tensor& sum, const Tensor& gain, const Tensor& mean,
                                          const Tensor& rstd, const Tensor& grad, const Tensor& grad_sum,
                                          int repeat, std::optional<DType> residual = {});

}  // namespace gyre::kernels
