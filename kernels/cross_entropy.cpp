#include "kernels/cross_entropy.h"

#include "kernels/cpu/cross_entropy.h"
#include "kernels/cuda/cross_entropy.h"
#include "kernels/index_range.h"
#include "kernels/op.h"

namespace gyre::kernels {
namespace {

constexpr Op<const Tensor&, const Tensor&, double, Tensor&, Tensor&> forward_op{
    "cross_entropy_forward", cpu::cross_entropy_forward, GYRE_CUDA_OP(cuda::cross_entropy_forward)};
constexpr Op<const Tensor&, const Tensor&, double, const Tensor&, Tensor&> backward_op{
    "cross_entropy_backward", cpu::cross_entropy_backward, GYRE_CUDA_OP(cuda::cross_entropy_backward)};
constexpr Op<const Tensor&, const Tensor&, Tensor&, Tensor&> soft_forward_op{
    "cross_entropy_soft_forward", cpu::cross_entropy_soft_forward,
    GYRE_CUDA_OP(cuda::cross_entropy_soft_forward)};
constexpr Op<const Tensor&, const Tensor&, const Tensor&, Tensor&> soft_backward_op{
    "cross_entropy_soft_backward", cpu::cross_entropy_soft_backward,
    GYRE_CUDA_OP(cuda::cross_entropy_soft_backward)};

void check_logits(const Tensor& logits) {
  require<DTypeError>(logits.dtype() == DType::f32 || logits.dtype() == DType::f64,
                      "cross_entropy takes f32 or f64, not {}", logits.dtype());
  require<ShapeError>(logits.rank() == 2 && logits.numel() > 0,
                      "cross_entropy takes logits [N, K] with at least one row and class, not {}",
                      logits.shape());
}

/// The labels as a dense tensor, every one a class.
Tensor checked_labels(const Tensor& labels, const Tensor& logits, double smoothing) {
  require<ValueError>(smoothing >= 0 && smoothing < 1,
                      "cross_entropy: label smoothing must lie in [0, 1), is {}", smoothing);
  require<DTypeError>(labels.dtype() == DType::i64, "cross_entropy: labels must be i64, not {}",
                      labels.dtype());
  require<ShapeError>(labels.rank() == 1 && labels.size(0) == logits.size(0),
                      "cross_entropy: labels {} do not fit logits {}", labels.shape(), logits.shape());
  require_same_device(labels, logits, "cross_entropy");
  const Tensor dense = labels.contiguous();
  if (const auto outside = first_outside(dense, logits.size(1)))
    throw ValueError(fmt::format("cross_entropy: row {} has label {}, allowed are 0 to {}", outside->position,
                                 outside->value, logits.size(1) - 1));
  return dense;
}

void check_same(const Tensor& logits, const Tensor& other, const Shape& shape) {
  require_same_device(logits, other, "cross_entropy");
  require_same_dtype(logits, other, "cross_entropy");
  require_shape(other, shape, "cross_entropy");
}

CrossEntropyResult make_result(const Tensor& logits) {
  return {Tensor::empty({1}, logits.dtype(), logits.device()),
          Tensor::empty(logits.shape(), logits.dtype(), logits.device())};
}

}  // namespace

CrossEntropyResult cross_entropy_forward(const Tensor& logits, const Tensor& labels, double smoothing) {
  check_logits(logits);
  const Tensor dense_labels = checked_labels(labels, logits, smoothing);
  CrossEntropyResult result = make_result(logits);
  forward_op(logits.device(), logits.contiguous(), dense_labels, smoothing, result.loss,
             result.probabilities);
  return result;
}

Tensor cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double smoothing,
                              const Tensor& grad) {
  check_logits(probabilities);
  const Tensor dense_labels = checked_labels(labels, probabilities, smoothing);
  check_same(probabilities, grad, {1});
  Tensor result = Tensor::empty(probabilities.shape(), probabilities.dtype(), probabilities.device());
  backward_op(result.device(), probabilities.contiguous(), dense_labels, smoothing, grad, result);
  return result;
}

CrossEntropyResult cross_entropy_soft_forward(const Tensor& logits, const Tensor& targets) {
  check_logits(logits);
  check_same(logits, targets, logits.shape());
  CrossEntropyResult result = make_result(logits);
  soft_forward_op(logits.device(), logits.contiguous(), targets.contiguous(), result.loss,
                  result.probabilities);
  return result;
}

Tensor cross_entropy_soft_backward(const Tensor& probabilities, const Tensor& targets, const Tensor& grad) {
  check_logits(probabilities);
  check_same(probabilities, targets, probabilities.shape());
  check_same(probabilities, grad, {1});
  Tensor result = Tensor::empty(probabilities.shape(), probabilities.dtype(), probabilities.device());
  soft_backward_op(result.device(), probabilities.contiguous(), targets.contiguous(), grad, result);
  return result;
}

}  // namespace gyre::kernels
