#include "autograd/ops/attention.h"

#include <cmath>
#include <utility>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/linear_algebra.h"
#include "autograd/ops/normalization.h"
#include "autograd/ops/shape.h"
#include "kernels/attention.h"

namespace gyre {

Variable attention(const Variable& qkv) {
  const bool records = needs_grad({qkv});
  kernels::AttentionResult result = kernels::attention_forward(qkv.data(), records);
  if (!records) return Variable(std::move(result.y));
  SavedTensor saved_y(result.y);
  return make_result("attention", std::move(result.y), {qkv},
                     [saved = SavedTensor(qkv.data()), probabilities = std::move(result.probabilities),
                      saved_y = std::move(saved_y)](const Tensor& grad) -> Gradients {
                       return {kernels::attention_backward(saved.unpack("attention"), probabilities,
                                                           saved_y.unpack("attention"), grad)};
                     });
}

Variable attention_reference(const Variable& qkv) {
  require<ShapeError>(qkv.rank() == 5 && qkv.size(2) == 3, "attention: qkv {} is not [B, L, 3, heads, E]",
                      qkv.shape());
  const double scale = 1 / std::sqrt(static_cast<double>(qkv.size(4)));
  const auto part = [&qkv](std::int64_t i) {
    return permute(select(qkv, 2, i), {0, 2, 1, 3});
  };  // [B, heads, L, E]
  const Variable scores = affine(matmul(part(0), transpose(part(1), 2, 3)), scale);
  const Variable y = permute(matmul(softmax(scores), part(2)), {0, 2, 1, 3});
  return reshape(y, {qkv.size(0), qkv.size(1), qkv.size(3) * qkv.size(4)});
}

}  // namespace gyre
