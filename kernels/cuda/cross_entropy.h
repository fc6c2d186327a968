#pragma once

#include "core/tensor.h"

namespace gyre::kernels::cuda {

// Dense tensors; logits, probabilities, targets and result [N, K]; loss, grad [1].

/// labels i64 [N], checked. Target (1 - smoothing)·onehot + smoothing/K.
void cross_entropy_forward(const Tensor& logits, const Tensor& labels, double smoothing, Tensor& loss,
                           Tensor& probabilities);
void cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double smoothing,
                            const Tensor& grad, Tensor& result);
void cross_entropy_soft_forward(const Tensor& logits, const Tensor& targets, Tensor& loss,
                                Tensor& probabilities);
void cross_entropy_soft_backward(const Tensor& probabilities, const Tensor& targets, const Tensor& grad,
                                 Tensor& result);

}  // namespace gyre::kernels::cuda
