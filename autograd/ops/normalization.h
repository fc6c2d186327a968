#pragma once

#include <optional>

#include "autograd/variable.h"

namespace gyre {

/// Normalises the last dimension (biased variance over all of it), then applies gain and bias.
/// x [..., C·repeat], gain and bias [C], each tied over `repeat` consecutive channels; repeat = 1 is the
/// ordinary norm. `result`: type of the result, by default that of x; f16 or bf16 beside f32 on CUDA.
Variable layer_norm(const Variable& x, const Variable& gain, const Variable& bias, int repeat, double eps,
                    std::optional<DType> result = {});

struct AddLayerNorm {
  Variable sum;   ///< x + r
  Variable norm;  ///< layer_norm(sum)
};
/// A residual connection and the norm behind it in one pass over memory, and one back. r has the shape of x
/// and its type, or on CUDA f16 or bf16 beside f32; `result` is the type of the norm. Without r the sum is x
/// itself: what goes on from there sends its gradient back together with that of the norm.
AddLayerNorm add_layer_norm(const Variable& x, const Variable& r, const Variable& gain, const Variable& bias,
                            int repeat, double eps, std::optional<DType> result = {});

/// Over the last dimension.
Variable softmax(const Variable& x);

}  // namespace gyre
