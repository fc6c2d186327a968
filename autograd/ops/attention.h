#pragma once

#include "autograd/variable.h"

namespace gyre {

/// Scaled dot-product attention, fused: qkv [B, L, 3, heads, E] → [B, L, heads·E], scores scaled by E^-1/2.
/// Within windows (image b is window b mod W of a picture) `bias` [heads, L, L] and `mask` [W, L, L] are
/// added to the scores; both may be undefined, and the mask has no gradient. qkv is taken, and the result
/// returned, in the type of the AutocastScope; to qkv in f16 or bf16 bias and mask come in f32.
Variable attention(const Variable& qkv, const Variable& bias = {}, const Tensor& mask = {});

/// The same by matmul, softmax and permute: the plain twin that tests compare with.
Variable attention_reference(const Variable& qkv, const Variable& bias = {}, const Tensor& mask = {});

}  // namespace gyre
