#pragma once

#include "core/tensor.h"

namespace gyre::kernels {

/// loss [1], the mean over N rows; probabilities [N, K] = softmax of the logits, for the backward.
struct CrossEntropyResult {
  Tensor loss, probabilities;
};

// logits [N, K] of f32 or f64 with N, K ≥ 1.
// Label smoothing s in [0, 1) makes the target (1 - s)·onehot + s/K.

/// labels i64 [N]; ValueError gives row, label and range of the first outside [0, K).
CrossEntropyResult cross_entropy_forward(const Tensor& logits, const Tensor& labels, double smoothing);
/// grad [1] → gradient of the logits [N, K].
Tensor cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double smoothing,
                              const Tensor& grad);

/// targets [N, K] of the logits' type, any weights (rows need not add to one):
/// loss = -1/N Σ targets ∘ log softmax(logits).
CrossEntropyResult cross_entropy_soft_forward(const Tensor& logits, const Tensor& targets);
/// grad [1] → gradient of the logits [N, K]; targets count as constants.
Tensor cross_entropy_soft_backward(const Tensor& probabilities, const Tensor& targets, const Tensor& grad);

}  // namespace gyre::kernels
