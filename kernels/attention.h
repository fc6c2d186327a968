#pragma once

#include "core/tensor.h"

namespace gyre::kernels {

/// What is added to the scores before the softmax, for attention within windows: image b of the batch is
/// window b mod W of a picture. Either may be undefined.
struct ScoreBias {
  Tensor bias;  ///< [H, L, L], for every image
  Tensor mask;  ///< [W, L, L], W divides B; -infinity where a query must not see a key
};

/// y [B, L, H·E]; probabilities [B, H, L (query), L (key)] if kept, else undefined.
struct AttentionResult {
  Tensor y, probabilities;
};
/// Multi-head attention softmax(E^-1/2 · Q Kᵀ + bias + mask) V of qkv [B, L, 3, H, E], f32 or f64.
AttentionResult attention_forward(const Tensor& qkv, bool keep_probabilities, const ScoreBias& added = {});
/// Gradient of qkv [B, L, 3, H, E] from the forward's probabilities and grad [B, L, H·E]. If
/// `bias_gradient` is given, it becomes that of the bias [H, L, L].
Tensor attention_backward(const Tensor& qkv, const Tensor& probabilities, const Tensor& grad,
                          Tensor* bias_gradient = nullptr);

}  // namespace gyre::kernels
