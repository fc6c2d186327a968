#include "kernels/layer_norm.h"

#include "kernels/cpu/layer_norm.h"
#include "kernels/cuda/layer_norm.h"
#include "kernels/op.h"
#include "kernels/types.h"

namespace gyre::kernels {
namespace {

constexpr Op<const Tensor&, const Tensor&, const Tensor&, int, double, Tensor&, Tensor&, Tensor&> forward_op{
    "layer_norm_forward", cpu::layer_norm_forward, GYRE_CUDA_OP(cuda::layer_norm_forward)};
constexpr Op<const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, int, Tensor&, Tensor&,
             Tensor&>
    backward_op{"layer_norm_backward", cpu::layer_norm_backward, GYRE_CUDA_OP(cuda::layer_norm_backward)};

/// The type of gains and statistics: x's own, but f32 for 16 bits.
void require_wide(const Tensor& x, const Tensor& other, std::string_view what) {
  const DType wide = wide_type(x.dtype());
  require<DTypeError>(other.dtype() == wide, "{}: data types {} and {} differ", what, wide, other.dtype());
}

void check(const Tensor& x, const Tensor& gain, int repeat, std::string_view what) {
  require_computable(x, what);
  require<ValueError>(repeat >= 1, "{}: repeat must be at least 1, not {}", what, repeat);
  require<ShapeError>(
      x.rank() == 2 && x.size(1) >= 1 && gain.rank() == 1 && gain.size(0) * repeat == x.size(1),
      "{}: x {} is not [N, C * {}] for gain {}", what, x.shape(), repeat, gain.shape());
  require_same_device(x, gain, what);
  require_wide(x, gain, what);
}

void check_wide(const Tensor& x, const Tensor& other, const Shape& shape, std::string_view what) {
  require_same_device(x, other, what);
  require_wide(x, other, what);
  require_shape(other, shape, what);
}

}  // namespace

LayerNormResult layer_norm_forward(const Tensor& x, const Tensor& gain, const Tensor& bias, int repeat,
                                   double eps) {
  check(x, gain, repeat, "layer_norm");
  check_wide(x, bias, gain.shape(), "layer_norm");
  require<ValueError>(eps >= 0, "layer_norm: eps must not be negative, is {}", eps);
  const Shape rows{x.size(0)};
  LayerNormResult result{Tensor::empty(x.shape(), x.dtype(), x.device()),
                         Tensor::empty(rows, gain.dtype(), x.device()),
                         Tensor::empty(rows, gain.dtype(), x.device())};
  if (x.numel() > 0)
    forward_op(x.device(), x.contiguous(), gain.contiguous(), bias.contiguous(), repeat, eps, result.y,
               result.mean, result.rstd);
  return result;
}

LayerNormGrads layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean,
                                   const Tensor& rstd, const Tensor& grad, int repeat) {
  check(x, gain, repeat, "layer_norm_backward");
  check_wide(x, mean, {x.size(0)}, "layer_norm_backward");
  check_wide(x, rstd, {x.size(0)}, "layer_norm_backward");
  require_same_device(x, grad, "layer_norm_backward");
  require_same_dtype(x, grad, "layer_norm_backward");
  require_shape(grad, x.shape(), "layer_norm_backward");
  LayerNormGrads result{Tensor::empty(x.shape(), x.dtype(), x.device()),
                        Tensor::empty(gain.shape(), gain.dtype(), x.device()),
                        Tensor::empty(gain.shape(), gain.dtype(), x.device())};
  backward_op(x.device(), x.contiguous(), gain.contiguous(), mean.contiguous(), rstd.contiguous(),
              grad.contiguous(), repeat, result.x, result.gain, result.bias);
  return result;
}

}  // namespace gyre::kernels
