#include "autograd/ops/loss.h"

#include <utility>

#include "kernels/cross_entropy.h"

namespace gyre {

Variable cross_entropy(const Variable& logits, const Tensor& labels, double smoothing) {
  kernels::CrossEntropyResult result = kernels::cross_entropy_forward(logits.data(), labels, smoothing);
  if (!needs_grad({logits})) return Variable(std::move(result.loss));
  return make_result("cross_entropy", std::move(result.loss), {logits},
                     [probabilities = std::move(result.probabilities), saved = SavedTensor(labels),
                      smoothing](const Tensor& grad) -> Gradients {
                       return {kernels::cross_entropy_backward(probabilities, saved.unpack("cross_entropy"),
                                                               smoothing, grad)};
                     });
}

Variable cross_entropy_soft(const Variable& logits, const Tensor& targets) {
  kernels::CrossEntropyResult result = kernels::cross_entropy_soft_forward(logits.data(), targets);
  if (!needs_grad({logits})) return Variable(std::move(result.loss));
  return make_result("cross_entropy_soft", std::move(result.loss), {logits},
                     [probabilities = std::move(result.probabilities),
                      saved = SavedTensor(targets)](const Tensor& grad) -> Gradients {
                       return {kernels::cross_entropy_soft_backward(
                           probabilities, saved.unpack("cross_entropy_soft"), grad)};
                     });
}

}  // namespace gyre
