#pragma once

#include "autograd/variable.h"

namespace gyre {

/// Normalises the last dimension (biased variance over all of it), then applies gain and bias.
/// x [..., C·repeat], gain and bias [C], each tied over `repeat` consecutive channels; repeat = 1 is the
/// ordinary norm.
Variable layer_norm(const Variable& x, const Variable& gain, const Variable& bias, int repeat, double eps);

/// Over the last dimension.
Variable softmax(const Variable& x);

}  // namespace gyre
