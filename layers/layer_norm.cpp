#include "layers/layer_norm.h"

#include "autograd/autocast.h"

namespace gyre {

LayerNorm::LayerNorm(std::int64_t channels, int repeat, double eps)
    : repeat_(repeat),
      eps_(eps),
      weight_(&add_parameter("weight", Tensor::ones({channels}))),
      bias_(&add_parameter("bias", Tensor::zeros({channels}))) {}

Variable LayerNorm::forward(const Variable& x) {
  return layer_norm(widen(x), weight_->variable, bias_->variable, repeat_, eps_, result_type());
}

AddLayerNorm LayerNorm::add_forward(const Variable& x, const Variable& r) {
  AddLayerNorm result =
      add_layer_norm(widen(x), r, weight_->variable, bias_->variable, repeat_, eps_, result_type());
  observe(result.sum, result.norm);
  return result;
}

std::optional<DType> LayerNorm::result_type() const {
  return before_product_ ? autocast_type() : std::nullopt;
}

std::string LayerNorm::describe() const {
  return fmt::format("{}, eps {:g}", weight_->variable.size(0) * repeat_, eps_);
}

}  // namespace gyre
