#pragma once

#include "autograd/variable.h"

namespace gyre {

/// Mean over rows of -Σ_k target_k log softmax(logits)_k, where the label has 1 - smoothing + smoothing/K and
/// every other class smoothing/K. logits [N, K], labels i64 [N] with values in [0, K), smoothing in [0, 1) →
/// [1].
Variable cross_entropy(const Variable& logits, const Tensor& labels, double smoothing = 0);

/// The same for any target distribution (mixup): targets [N, K] of the type of `logits`, not differentiated →
/// [1].
Variable cross_entropy_soft(const Variable& logits, const Tensor& targets);

}  // namespace gyre
