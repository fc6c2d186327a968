#include "autograd/ops/normalization.h"

#include <utility>

#include "autograd/ops/rows.h"
#include "kernels/layer_norm.h"
#include "kernels/softmax.h"

namespace gyre {

Variable layer_norm(const Variable& x, const Variable& gain, const Variable& bias, int repeat, double eps) {
  require<ShapeError>(x.rank() >= 1, "layer_norm: x has no dimension to normalise");
  Tensor rows = as_rows(x.data());
  kernels::LayerNormResult result = kernels::layer_norm_forward(rows, gain.data(), bias.data(), repeat, eps);
  Tensor y = result.y.reshape(x.shape());
  if (!needs_grad({x, gain, bias})) return Variable(std::move(y));
  return make_result("layer_norm", std::move(y), {x, gain, bias},
                     [saved_x = SavedTensor(std::move(rows)), saved_gain = SavedTensor(gain.data()),
                      mean = std::move(result.mean), rstd = std::move(result.rstd), repeat,
                      shape = x.shape()](const Tensor& grad) -> Gradients {
                       kernels::LayerNormGrads grads = kernels::layer_norm_backward(
                           saved_x.unpack("layer_norm"), saved_gain.unpack("layer_norm"), mean, rstd,
                           as_rows(grad), repeat);
                       return {grads.x.reshape(shape), std::move(grads.gain), std::move(grads.bias)};
                     });
}

Variable softmax(const Variable& x) {
  Tensor y = kernels::softmax_forward(x.data());
  if (!needs_grad({x})) return Variable(std::move(y));
  SavedTensor saved(y);
  return make_result("softmax", std::move(y), {x},
                     [saved = std::move(saved)](const Tensor& grad) -> Gradients {
                       return {kernels::softmax_backward(saved.unpack("softmax"), grad)};
                     });
}

}  // namespace gyre
