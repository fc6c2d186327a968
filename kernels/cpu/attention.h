#pragma once

#include "core/tensor.h"

namespace gyre::kernels::cpu {

/// Dense qkv [B, L, 3, H, E], y [B, L, H·E]; probabilities dense [B, H, L, L] or undefined.
void attention_forward(const Tensor& qkv, Tensor& y, Tensor& probabilities);
/// Dense qkv, result [B, L, 3, H, E]; probabilities [B, H, L, L]; y, grad [B, L, H·E].
void attention_backward(const Tensor& qkv, const Tensor& probabilities, const Tensor& y, const Tensor& grad,
                        Tensor& result);

}  // namespace gyre::kernels::cpu
