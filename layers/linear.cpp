#include "layers/linear.h"

#include "autograd/ops/linear_algebra.h"

namespace gyre {

Linear::Linear(std::int64_t in, std::int64_t out, bool bias, RandomStream& stream, Initialiser weight,
               kernels::Activation activation)
    : weight_(&add_parameter("weight", weight({out, in}, stream))), activation_(activation) {
  if (bias) bias_ = &add_parameter("bias", Tensor::zeros({out}));
}

Variable Linear::forward(const Variable& x) {
  return linear(x, weight_->variable, bias_ ? bias_->variable : Variable(), packed_, activation_);
}

std::string Linear::describe() const {
  const Shape& shape = weight_->variable.shape();
  return fmt::format("{} to {}{}{}", shape[1], shape[0], bias_ ? "" : ", no bias",
                     activation_ == Activation::gelu ? ", GELU" : "");
}

}  // namespace gyre
