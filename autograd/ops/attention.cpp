#include "autograd/ops/attention.h"

#include <cmath>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/linear_algebra.h"
#include "autograd/ops/normalization.h"
#include "autograd/ops/shape.h"
#include "kernels/attention.h"

namespace gyre {

Variable attention(const Variable& projections, const Variable& bias, const Tensor& mask) {
  const Variable qkv = autocast(projections);
  const bool records = needs_grad({qkv, bias});
  kernels::AttentionResult result =
      kernels::attention_forward(qkv.data(), records, {bias.defined() ? bias.data() : Tensor(), mask});
  if (!records) return Variable(std::move(result.y));
  const bool need_bias = bias.defined() && bias.requires_grad();
  const bool on_cuda = qkv.data().device().is_cuda();  // which finds probabilities anew
  const auto saved_there = [on_cuda](const Tensor& x) {
    return on_cuda && x.defined() ? SavedTensor(x) : SavedTensor();
  };
  return make_result(
      "attention", result.y, {qkv, bias},
      [saved = SavedTensor(qkv.data()), saved_y = saved_there(result.y),
       saved_bias = saved_there(bias.defined() ? bias.data() : Tensor()), saved_mask = saved_there(mask),
       probabilities = std::move(result.probabilities), logarithms = std::move(result.logarithms),
       need_bias](const Tensor& grad) -> Gradients {
        Tensor db;
        Tensor dx = kernels::attention_backward(
            saved.unpack("attention"), {saved_y.unpack("attention"), probabilities, logarithms}, grad,
            need_bias ? &db : nullptr, {saved_bias.unpack("attention"), saved_mask.unpack("attention")});
        return {std::move(dx), std::move(db)};
      });
}

Variable attention_reference(const Variable& qkv, const Variable& bias, const Tensor& mask) {
  require<ShapeError>(qkv.rank() == 5 && qkv.size(2) == 3, "attention: qkv {} is not [B, L, 3, heads, E]",
                      qkv.shape());
  const std::int64_t images = qkv.size(0), length = qkv.size(1), heads = qkv.size(3);
  const double scale = 1 / std::sqrt(static_cast<double>(qkv.size(4)));
  const auto part = [&qkv](std::int64_t i) {
    return permute(select(qkv, 2, i), {0, 2, 1, 3});
  };  // [B, heads, L, E]
  Variable scores = affine(widen(matmul(part(0), transpose(part(1), 2, 3))), scale);
  if (bias.defined()) scores = scores + bias;
  if (mask.defined()) {
    const Variable by_picture = reshape(scores, {-1, mask.size(0), heads, length, length});
    scores = reshape(by_picture + Variable(mask.unsqueeze(1)), scores.shape());
  }
  const Variable y = permute(matmul(softmax(scores), part(2)), {0, 2, 1, 3});
  return reshape(y, {images, length, heads * qkv.size(4)});
}

}  // namespace gyre
