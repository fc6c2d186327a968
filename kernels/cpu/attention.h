#pragma once

#include "kernels/attention.h"

namespace gyre::kernels::cpu {

/// Dense qkv [B, L, 3, H, E], `added` dense, y [B, L, H·E]; probabilities are made if `keep`.
void attention_forward(const Tensor& qkv, const ScoreBias& added, bool keep, AttentionResult& result);
/// Dense qkv, result [B, L, 3, H, E]; probabilities [B, H, L, L]; grad [B, L, H·E]; adds to bias_gradient
/// [H, L, L], which may be undefined.
void attention_backward(const Tensor& qkv, const AttentionResult& forward, const ScoreBias& added,
                        const Tensor& grad, Tensor& result, Tensor& bias_gradient);

}  // namespace gyre::kernels::cpu
