#pragma once

#include "core/tensor.h"

namespace gyre::kernels {

/// y [B, L, H·E]; probabilities [B, H, L (query), L (key)] if kept, else undefined.
struct AttentionResult {
  Tensor y, probabilities;
};
/// Multi-head attention softmax(E^-1/2 · Q Kᵀ) V of qkv [B, L, 3, H, E], f32 or f64.
AttentionResult attention_forward(const Tensor& qkv, bool keep_probabilities);
/// Gradient of qkv [B, L, 3, H, E] from the forward's probabilities and y, and grad [B, L, H·E].
Tensor attention_backward(const Tensor& qkv, const Tensor& probabilities, const Tensor& y,
                          const Tensor& grad);

}  // namespace gyre::kernels
