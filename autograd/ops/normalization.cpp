#include "autograd/ops/normalization.h"

#include <utility>

#include "autograd/ops/rows.h"
#include "kernels/layer_norm.h"
#include "kernels/softmax.h"

namespace gyre {

Variable layer_norm(const Variable& x, const Variable& gain, const Variable& bias, int repeat, double eps,
                    std::optional<DType> result) {
  require<ShapeError>(x.rank() >= 1, "layer_norm: x has no dimension to normalise");
  Tensor rows = as_rows(x.data());
  kernels::LayerNormResult norm =
      kernels::layer_norm_forward(rows, gain.data(), bias.data(), repeat, eps, result);
  Tensor y = norm.y.reshape(x.shape());
  if (!needs_grad({x, gain, bias})) return Variable(std::move(y));
  return make_result("layer_norm", std::move(y), {x, gain, bias},
                     [saved_x = SavedTensor(std::move(rows)), saved_gain = SavedTensor(gain.data()),
                      mean = std::move(norm.mean), rstd = std::move(norm.rstd), repeat,
                      shape = x.shape()](const Tensor& grad) -> Gradients {
                       kernels::LayerNormGrads grads = kernels::layer_norm_backward(
                           saved_x.unpack("layer_norm"), saved_gain.unpack("layer_norm"), mean, rstd,
                           as_rows(grad), repeat);
                       return {grads.x.reshape(shape), std::move(grads.gain), std::move(grads.bias)};
                     });
}

AddLayerNorm add_layer_norm(const Variable& x, const Variable& r, const Variable& gain, const Variable& bias,
                            int repeat, double eps, std::optional<DType> result) {
  require<ShapeError>(x.rank() >= 1, "add_layer_norm: x has no dimension to normalise");
  const bool adds = r.defined();
  if (adds) require_shape(r.data(), x.shape(), "add_layer_norm");
  Tensor sum = as_rows(x.data());
  kernels::LayerNormResult norm;
  if (adds) {
    kernels::AddLayerNormResult both = kernels::add_layer_norm_forward(sum, as_rows(r.data()), gain.data(),
                                                                       bias.data(), repeat, eps, result);
    sum = std::move(both.sum);
    norm = {std::move(both.y), std::move(both.mean), std::move(both.rstd)};
  } else {
    norm = kernels::layer_norm_forward(sum, gain.data(), bias.data(), repeat, eps, result);
  }
  std::vector<Tensor> outputs{adds ? sum.reshape(x.shape()) : x.data(), norm.y.reshape(x.shape())};
  auto backward = [saved_sum = SavedTensor(std::move(sum)), saved_gain = SavedTensor(gain.data()),
                   mean = std::move(norm.mean), rstd = std::move(norm.rstd), repeat, shape = x.shape(), adds,
                   type_r = adds ? r.dtype() : x.dtype()](std::span<const Tensor> grads) -> Gradients {
    const Tensor &grad_sum = grads[0], &grad_norm = grads[1];
    if (!grad_norm.defined()) return {grad_sum, adds ? grad_sum.to(type_r) : Tensor(), {}, {}};
    kernels::AddLayerNormGrads back = kernels::add_layer_norm_backward(
        saved_sum.unpack("add_layer_norm"), saved_gain.unpack("add_layer_norm"), mean, rstd,
        as_rows(grad_norm), grad_sum.defined() ? as_rows(grad_sum) : grad_sum, repeat, type_r);
    return {back.x.reshape(shape), adds ? back.r.reshape(shape) : Tensor(), std::move(back.gain),
            std::move(back.bias)};
  };
  std::vector<Variable> results =
      make_results("add_layer_norm", std::move(outputs), {x, r, gain, bias}, std::move(backward));
  return {std::move(results[0]), std::move(results[1])};
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
