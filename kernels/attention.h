#pragma once

#include "core/tensor.h"

namespace gyre::kernels {

/// What is added to the scores before the softmax, for attention within windows: image b of the batch is
/// window b mod W of a picture. Either may be undefined.
struct ScoreBias {
  Tensor bias;  ///< [H, L, L], for every image
  Tensor mask;  ///< [W, L, L], W divides B; -infinity where a query must not see a key
};

/// y [B, L, H·E], and what the backward needs, undefined unless kept.
struct AttentionResult {
  Tensor y;
  Tensor probabilities;  ///< [B, H, L (query), L (key)], on the CPU
  Tensor logarithms;     ///< log Σ e^score [B, H, L (query)], on CUDA: it finds probabilities anew from it
};
/// Multi-head attention softmax(E^-1/2 · Q Kᵀ + bias + mask) V of qkv [B, L, 3, H, E], f32 or f64. On CUDA
/// also f16 or bf16, with bias, mask and logarithms in f32, and E is at most 256, in f64 128: DeviceError.
AttentionResult attention_forward(const Tensor& qkv, bool keep_for_backward, const ScoreBias& added = {});
/// Gradient of qkv [B, L, 3, H, E] for grad [B, L, H·E]. `forward` is the forward's result, whose y the CPU
/// does without, and `added` as it was given there, which the CPU does not read. If `bias_gradient` is given,
/// it becomes that of the bias [H, L, L].
Tensor attention_backward(const Tensor& qkv, const AttentionResult& forward, const Tensor& grad,
                          Tensor* bias_gradient = nullptr, const ScoreBias& added = {});

}  // namespace gyre::kernels
