#include "layers/eq_linear.h"

#include <cmath>

#include "autograd/ops/linear_algebra.h"
#include "layers/initialise.h"

namespace gyre {

EqProduct::EqProduct(const Group& group, std::int64_t channels_in, std::int64_t channels_out,
                     kernels::EqLinearOptions options)
    : group_(&group),
      channels_in_(channels_in),
      channels_out_(channels_out),
      options_(options),
      planes_(std::make_shared<kernels::EqPlanes>()) {}

void EqProduct::set_backend(kernels::EqBackend backend) { options_.backend = backend; }

std::string EqProduct::kernel_name(DType dtype, std::int64_t rows, Device device) const {
  return kernels::eq_linear_kernel(*group_, options_, dtype, rows, channels_in_, channels_out_,
                                   kernels::EqDirection::forward, device);
}

int EqProduct::rebuilds() const { return planes_->rebuilds(); }

Variable EqProduct::product(const Variable& x, const Variable& weight, const Variable& bias,
                            kernels::Activation activation) const {
  return eq_linear(*group_, x, weight, bias, options_, planes_, activation);
}

EqLinear::EqLinear(const Group& group, std::int64_t in, std::int64_t out, bool bias, RandomStream& stream,
                   kernels::EqLinearOptions options, kernels::Activation activation)
    : EqProduct(group, in, out, options), activation_(activation) {
  const auto fan_in = static_cast<double>(in * group.order());
  const Initialiser initialiser = Initialiser::uniform(1 / std::sqrt(fan_in));
  weight_ = &add_parameter("weight", initialiser({out, in, group.order()}, stream));
  if (bias) bias_ = &add_parameter("bias", initialiser({out}, stream));
}

Variable EqLinear::forward(const Variable& x) {
  return product(x, weight_->variable, bias_ ? bias_->variable : Variable(), activation_);
}

std::string EqLinear::describe() const {
  return fmt::format("{} to {} per element, {}{}{}", channels_in(), channels_out(), group().name(),
                     bias_ ? "" : ", no bias", activation_ == Activation::gelu ? ", GELU" : "");
}

}  // namespace gyre
