#pragma once

#include "autograd/variable.h"

namespace gyre {

/// Scaled dot-product attention, fused: qkv [B, L, 3, heads, E] → [B, L, heads·E], scores scaled by E^-1/2.
Variable attention(const Variable& qkv);

/// The same by matmul, softmax and permute: the plain twin that tests compare with.
Variable attention_reference(const Variable& qkv);

}  // namespace gyre
