#include "kernels/layer_norm.h"

#include "kernels/cpu/layer_norm.h"
#include "kernels/cuda/layer_norm.h"
#include "kernels/op.h"
#include "kernels/types.h"

namespace gyre::kernels {
namespace {

using Forward = Op<const Tensor&, const Tensor&, const Tensor&, const Tensor&, int, double, Tensor&, Tensor&,
                   Tensor&, Tensor&>;
using Backward = Op<const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                    int, Tensor&, Tensor&, Tensor&, Tensor&>;
constexpr Forward forward_op{"layer_norm_forward", cpu::layer_norm_forward,
                             GYRE_CUDA_OP(cuda::layer_norm_forward)};
constexpr Forward add_forward_op{"add_layer_norm_forward", cpu::layer_norm_forward,
                                 GYRE_CUDA_OP(cuda::layer_norm_forward)};
constexpr Backward backward_op{"layer_norm_backward", cpu::layer_norm_backward,
                               GYRE_CUDA_OP(cuda::layer_norm_backward)};
constexpr Backward add_backward_op{"add_layer_norm_backward", cpu::layer_norm_backward,
                                   GYRE_CUDA_OP(cuda::layer_norm_backward)};

void check(const Tensor& x, const Tensor& gain, int repeat, std::string_view what) {
  require_computable(x, what);
  require<ValueError>(repeat >= 1, "{}: repeat must be at least 1, not {}", what, repeat);
  require<ShapeError>(
      x.rank() == 2 && x.size(1) >= 1 && gain.rank() == 1 && gain.size(0) * repeat == x.size(1),
      "{}: x {} is not [N, C * {}] for gain {}", what, x.shape(), repeat, gain.shape());
  require_same_device(x, gain, what);
  require_dtype(gain, wide_type(x.dtype()), what);
}

void check_wide(const Tensor& x, const Tensor& other, const Shape& shape, std::string_view what) {
  require_same_device(x, other, what);
  require_dtype(other, wide_type(x.dtype()), what);
  require_shape(other, shape, what);
}

/// The kernels take x with arrays of its own type or, if that is f32 on CUDA, of one 16-bit type.
void check_types(const Tensor& x, DType a, DType b, std::string_view what) {
  for (const DType other : {a, b})
    require<DTypeError>(other == x.dtype() || (x.device().is_cuda() && x.dtype() == DType::f32 &&
                                               is_floating(other) && size_of(other) == 2),
                        "{} takes no {} beside {} on {}", what, other, x.dtype(), x.device());
  require<DTypeError>(a == b || a == x.dtype() || b == x.dtype(), "{} takes no {} beside {} and {}", what, a,
                      x.dtype(), b);
}

void check_like(const Tensor& x, const Tensor& other, std::string_view what) {
  require_same_device(x, other, what);
  require_shape(other, x.shape(), what);
}

Tensor like(const Tensor& x, DType dtype) { return Tensor::empty(x.shape(), dtype, x.device()); }

AddLayerNormResult forward(const Forward& op, const Tensor& x, const Tensor& r, const Tensor& gain,
                           const Tensor& bias, int repeat, double eps, DType dtype, std::string_view what) {
  check(x, gain, repeat, what);
  check_wide(x, bias, gain.shape(), what);
  check_types(x, r.defined() ? r.dtype() : x.dtype(), dtype, what);
  require<ValueError>(eps >= 0, "{}: eps must not be negative, is {}", what, eps);
  AddLayerNormResult result{Tensor(), like(x, dtype), Tensor::empty({x.size(0)}, gain.dtype(), x.device()),
                            Tensor::empty({x.size(0)}, gain.dtype(), x.device())};
  if (r.defined()) result.sum = like(x, x.dtype());
  if (x.numel() > 0)
    op(x.device(), x.contiguous(), r.defined() ? r.contiguous() : r, gain.contiguous(), bias.contiguous(),
       repeat, eps, result.sum, result.y, result.mean, result.rstd);
  return result;
}

AddLayerNormGrads backward(const Backward& op, const Tensor& x, const Tensor& gain, const Tensor& mean,
                           const Tensor& rstd, const Tensor& grad, const Tensor& outer, int repeat,
                           DType residual, std::string_view what) {
  check(x, gain, repeat, what);
  check_wide(x, mean, {x.size(0)}, what);
  check_wide(x, rstd, {x.size(0)}, what);
  check_like(x, grad, what);
  check_types(x, grad.dtype(), residual, what);
  if (outer.defined()) {
    check_like(x, outer, what);
    require_same_dtype(x, outer, what);
  }
  AddLayerNormGrads result{like(x, x.dtype()), Tensor(), like(gain, gain.dtype()), like(gain, gain.dtype())};
  if (residual != x.dtype()) result.r = like(x, residual);
  op(x.device(), x.contiguous(), gain.contiguous(), mean.contiguous(), rstd.contiguous(), grad.contiguous(),
     outer.defined() ? outer.contiguous() : outer, repeat, result.x, result.r, result.gain, result.bias);
  if (!result.r.defined()) result.r = result.x;
  return result;
}

}  // namespace

LayerNormResult layer_norm_forward(const Tensor& x, const Tensor& gain, const Tensor& bias, int repeat,
                                   double eps, std::optional<DType> result) {
  auto [sum, y, mean, rstd] =
      forward(forward_op, x, Tensor(), gain, bias, repeat, eps, result.value_or(x.dtype()), "layer_norm");
  return {std::move(y), std::move(mean), std::move(rstd)};
}

LayerNormGrads layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean,
                                   const Tensor& rstd, const Tensor& grad, int repeat) {
  auto [dx, dr, dgain, dbias] =
      backward(backward_op, x, gain, mean, rstd, grad, Tensor(), repeat, x.dtype(), "layer_norm_backward");
  return {std::move(dx), std::move(dgain), std::move(dbias)};
}

AddLayerNormResult add_layer_norm_forward(const Tensor& x, const Tensor& r, const Tensor& gain,
                                          const Tensor& bias, int repeat, double eps,
                                          std::optional<DType> result) {
  check_like(x, r, "add_layer_norm");
  return forward(add_forward_op, x, r, gain, bias, repeat, eps, result.value_or(x.dtype()), "add_layer_norm");
}

AddLayerNormGrads add_layer_norm_backward(const Tensor& sum, const Tensor& gain, const Tensor& mean,
                                          const Tensor& rstd, const Tensor& grad, const Tensor& grad_sum,
                                          int repeat, std::optional<DType> residual) {
  return backward(add_backward_op, sum, gain, mean, rstd, grad, grad_sum, repeat,
                  residual.value_or(sum.dtype()), "add_layer_norm_backward");
}

}  // namespace gyre::kernels
