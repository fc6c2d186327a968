#include "kernels/cuda/eq_linear.h"

#include <algorithm>
#include <array>

#include "kernels/bias_gelu.h"
#include "kernels/elementwise.h"
#include "kernels/reduce.h"
#include "kernels/types.h"

namespace gyre::kernels::cuda {
namespace {

EqShape shape_of(const Group& group, EqDirection direction, const Tensor& x, const Tensor& w) {
  return {group, direction, x.size(0), w.size(1), w.size(0), 1};
}

/// Sums of grad [N, D, T] over N and T, the long one first.
Tensor bias_gradient(const Tensor& grad) {
  const Tensor elements = wide_sum(grad, std::array{0}, false);
  return sum(elements, std::array{1}, false);
}

/// The gradient before the activation, and that of the bias along the way.
Tensor back_through_gelu(const EqBackward& call, LinearGrads& grads) {
  const Tensor& grad = call.grad;
  if (!call.need_b) return unary_backward(UnaryOp::gelu, call.before, Tensor(), grad);
  const Shape rows{grad.size(0), grad.size(1) * grad.size(2)};
  BiasGeluGrads result =
      kernels::bias_gelu_backward(call.before.reshape(rows), grad.reshape(rows), call.group.order());
  grads.b = std::move(result.bias);
  return result.x.reshape(grad.shape());
}

}  // namespace

EqImplementation eq_linear_choice(const EqShape& shape, EqBackend backend) {
  if (shape.channels_in == 0 || shape.channels_out == 0) return EqImplementation::naive;  // no planes
  if (backend == EqBackend::naive) return EqImplementation::naive;
  if (backend != EqBackend::automatic) return EqImplementation::packed;
  // Below, the transforms move as much memory as the products that they save.
  constexpr std::int64_t least_channels = 64;
  const bool worthwhile = std::min(shape.channels_in, shape.channels_out) >= least_channels;
  return shape.group.order() > 1 && worthwhile ? EqImplementation::packed : EqImplementation::naive;
}

void eq_linear_forward(const EqForward& call, Tensor& y) {
  const EqShape shape = shape_of(call.group, EqDirection::forward, call.x, call.w);
  const bool gelu = call.activation == Activation::gelu;
  if (call.pre_activation && gelu) *call.pre_activation = Tensor::empty(y.shape(), y.dtype(), y.device());
  if (y.numel() > 0) {
    if (eq_linear_choice(shape, call.backend) == EqImplementation::packed)
      packed_eq_linear_forward(call, y);
    else
      naive_eq_linear_forward(call, y);
  }
  if (call.pre_activation && !gelu) *call.pre_activation = y;
}

void eq_linear_backward(const EqBackward& given, LinearGrads& grads) {
  const Tensor grad = given.before.defined() ? back_through_gelu(given, grads) : given.grad, none;
  const EqBackward call{given.group,  given.form,   given.backend, given.x,     given.w, grad,
                        given.need_x, given.need_w, given.need_b,  given.cache, none};
  const EqShape shape = shape_of(call.group, EqDirection::backward, call.x, call.w);
  if (call.need_x) grads.x = Tensor::empty(call.x.shape(), call.x.dtype(), call.x.device());
  if (call.need_w) grads.w = Tensor::zeros(call.w.shape(), wide_type(call.w.dtype()), call.w.device());
  if (call.x.numel() > 0 || call.grad.numel() > 0) {
    if (eq_linear_choice(shape, call.backend) == EqImplementation::packed)
      packed_eq_linear_backward(call, grads);
    else
      naive_eq_linear_backward(call, grads);
  }
  if (call.need_b && !grads.b.defined()) grads.b = bias_gradient(call.grad);
}

}  // namespace gyre::kernels::cuda
