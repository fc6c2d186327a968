#include "bench/op_layer.h"

#include <array>
#include <utility>

#include "kernels/cpu/gemm_f32.h"
#include "kernels/reduce.h"

namespace gyre {
namespace {

using kernels::LinearGrads;

constexpr std::array<std::string_view, 4> direction_names{"forward", "backward", "dx", "dw"};

/// [N, C, T] as rows of width C·T.
Tensor flat(const Tensor& x) { return x.reshape({x.size(0), x.size(1) * x.size(2)}); }

Tensor exact(const Tensor& x) { return x.defined() ? x.to(DType::f64) : x; }

}  // namespace

OpDirection parse_op_direction(std::string_view name) {
  for (std::size_t i = 0; i < direction_names.size(); ++i)
    if (name == direction_names[i]) return static_cast<OpDirection>(i);
  throw ValueError(fmt::format("'{}' is not one of {}", name, fmt::join(direction_names, ", ")));
}

std::string_view name_of(OpDirection direction) {
  return direction_names[static_cast<std::size_t>(direction)];
}

OpLayer::OpLayer(const Group& group, std::string impl, int products, const Tensor& w, const Tensor& b)
    : group_(group), impl_(std::move(impl)), channels_(w.size(0)), weight_(w), bias_(b) {
  if (standard()) {
    weight_ = kernels::expand_eq_weight(group, w);
    bias_ = b.unsqueeze(1).expand({channels_, group.order()}).reshape({channels_ * group.order()});
  } else {
    options_ = {kernels::parse_eq_backend(impl_), products};
  }
}

std::string OpLayer::kernel(OpDirection direction, std::int64_t rows) const {
  if (standard()) return fmt::format("linear_{}", kernels::cpu::dense_library());
  return kernels::eq_linear_kernel(
      group_, options_, DType::f32, rows, channels_, channels_,
      direction == OpDirection::forward ? kernels::EqDirection::forward : kernels::EqDirection::backward);
}

double OpLayer::flops(OpDirection direction, std::int64_t rows) const {
  const double n = static_cast<double>(rows), c = static_cast<double>(channels_), order = group_.order();
  const int products = options_.products ? options_.products : group_.fewest_form().products();
  const bool dense = standard() || kernel(direction, rows).starts_with("naive");
  return (direction == OpDirection::backward ? 2 : 1) * 2 * n * c * c * (dense ? order * order : products);
}

Tensor OpLayer::forward(const Tensor& x) {
  if (standard()) return kernels::linear_forward(flat(x), weight_, bias_, &packed_).reshape(x.shape());
  return kernels::eq_linear_forward(group_, x, weight_, bias_, options_, &planes_);
}

LinearGrads OpLayer::backward(const Tensor& x, const Tensor& dy, OpDirection direction) {
  const bool need_x = direction != OpDirection::dw, need_w = direction != OpDirection::dx;
  if (standard())
    return kernels::linear_backward(flat(x), weight_, flat(dy), need_x, need_w, need_w, &packed_);
  return kernels::eq_linear_backward(group_, x, weight_, dy, need_x, need_w, need_w, options_, &planes_);
}

LinearGrads OpLayer::folded(const LinearGrads& grads) const {
  LinearGrads result{exact(grads.x), exact(grads.w), exact(grads.b)};
  if (!standard()) return result;
  const std::int64_t order = group_.order();
  if (result.x.defined()) result.x = result.x.reshape({-1, channels_, order});
  if (result.w.defined()) result.w = kernels::fold_eq_weight(group_, result.w, channels_, channels_);
  if (result.b.defined()) result.b = kernels::sum(result.b.reshape({channels_, order}), std::array{1}, false);
  return result;
}

}  // namespace gyre
