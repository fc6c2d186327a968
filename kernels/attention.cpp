#include "kernels/attention.h"

#include "kernels/cpu/attention.h"
#include "kernels/cuda/attention.h"
#include "kernels/op.h"
#include "kernels/types.h"

namespace gyre::kernels {
namespace {

constexpr Op<const Tensor&, const ScoreBias&, bool, AttentionResult&> forward_op{
    "attention_forward", cpu::attention_forward, GYRE_CUDA_OP(cuda::attention_forward)};
constexpr Op<const Tensor&, const AttentionResult&, const ScoreBias&, const Tensor&, Tensor&, Tensor&>
    backward_op{"attention_backward", cpu::attention_backward, GYRE_CUDA_OP(cuda::attention_backward)};

void check(const Tensor& qkv) {
  require_computable(qkv, "attention");
  require<ShapeError>(qkv.rank() == 5 && qkv.size(2) == 3 && qkv.size(4) >= 1,
                      "attention takes qkv [B, L, 3, H, E] with E >= 1, not {}", qkv.shape());
}

/// The tensor of type `dtype`, dense.
Tensor checked_companion(const Tensor& qkv, const Tensor& other, DType dtype, const Shape& shape) {
  require<ValueError>(other.defined(), "attention_backward: the forward kept nothing for it");
  require_same_device(qkv, other, "attention_backward");
  require_dtype(other, dtype, "attention_backward");
  require_shape(other, shape, "attention_backward");
  return other.contiguous();
}

Shape result_shape(const Tensor& qkv) { return {qkv.size(0), qkv.size(1), qkv.size(3) * qkv.size(4)}; }

Shape probability_shape(const Tensor& qkv) { return {qkv.size(0), qkv.size(3), qkv.size(1), qkv.size(1)}; }

Shape logarithm_shape(const Tensor& qkv) { return {qkv.size(0), qkv.size(3), qkv.size(1)}; }

/// Dense [count, L, L] of the wide type, or undefined.
Tensor checked_bias(const Tensor& qkv, const Tensor& added, std::int64_t count) {
  if (!added.defined()) return {};
  require_same_device(qkv, added, "attention_forward");
  require_dtype(added, wide_type(qkv.dtype()), "attention_forward");
  require_shape(added, {count, qkv.size(1), qkv.size(1)}, "attention_forward");
  return added.contiguous();
}

ScoreBias checked(const Tensor& qkv, const ScoreBias& added) {
  const std::int64_t windows = added.mask.defined() && added.mask.rank() == 3 ? added.mask.size(0) : 1;
  require<ShapeError>(windows > 0 && qkv.size(0) % windows == 0,
                      "attention: {} images are not whole pictures of {} windows", qkv.size(0), windows);
  return {checked_bias(qkv, added.bias, qkv.size(3)), checked_bias(qkv, added.mask, windows)};
}

}  // namespace

AttentionResult attention_forward(const Tensor& qkv, bool keep_for_backward, const ScoreBias& added) {
  check(qkv);
  const ScoreBias dense = checked(qkv, added);
  AttentionResult result;
  result.y = Tensor::empty(result_shape(qkv), qkv.dtype(), qkv.device());
  if (qkv.numel() > 0) {
    forward_op(qkv.device(), qkv.contiguous(), dense, keep_for_backward, result);
  } else if (keep_for_backward) {
    result.probabilities = Tensor::empty(probability_shape(qkv), qkv.dtype(), qkv.device());
    result.logarithms = Tensor::empty(logarithm_shape(qkv), wide_type(qkv.dtype()), qkv.device());
  }
  return result;
}

Tensor attention_backward(const Tensor& qkv, const AttentionResult& forward, const Tensor& grad,
                          Tensor* bias_gradient, const ScoreBias& added) {
  check(qkv);
  AttentionResult saved;
  ScoreBias dense;
  if (qkv.device().is_cuda()) {
    saved.y = checked_companion(qkv, forward.y, qkv.dtype(), result_shape(qkv));
    saved.logarithms =
        checked_companion(qkv, forward.logarithms, wide_type(qkv.dtype()), logarithm_shape(qkv));
    dense = checked(qkv, added);
  } else {
    saved.probabilities = checked_companion(qkv, forward.probabilities, qkv.dtype(), probability_shape(qkv));
  }
  const Tensor dense_grad = checked_companion(qkv, grad, qkv.dtype(), result_shape(qkv));
  Tensor result = Tensor::empty(qkv.shape(), qkv.dtype(), qkv.device());
  Tensor db;
  if (bias_gradient != nullptr)
    db = Tensor::zeros({qkv.size(3), qkv.size(1), qkv.size(1)}, wide_type(qkv.dtype()), qkv.device());
  if (qkv.numel() > 0) backward_op(qkv.device(), qkv.contiguous(), saved, dense, dense_grad, result, db);
  if (bias_gradient != nullptr) *bias_gradient = db;
  return result;
}

}  // namespace gyre::kernels
