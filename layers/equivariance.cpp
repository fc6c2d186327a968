#include "layers/equivariance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/group_action.h"

namespace gyre {

EquivarianceError equivariance_error(int element, const Tensor& value, const Tensor& reference) {
  require_shape(value, reference.shape(), "check_equivariance");
  const std::vector<double> a = value.to_vector();
  const std::vector<double> b = reference.to_vector();
  double difference = 0, magnitude = 0, difference2 = 0, magnitude2 = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = a[i] - b[i];
    difference += std::abs(d);
    magnitude += std::abs(b[i]);
    difference2 += d * d;
    magnitude2 += b[i] * b[i];
  }
  if (!(magnitude > 0) || !std::isfinite(difference)) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    return {element, infinite, infinite};
  }
  return {element, difference / magnitude, std::sqrt(difference2 / magnitude2)};
}

Tensor act(const Group& group, int g, const Tensor& x, const Meaning& meaning) {
  switch (meaning.kind) {
    case Meaning::Kind::image: return act_on_image(group, g, x);
    case Meaning::Kind::feature_map: return act_on_feature_map(group, g, x);
    case Meaning::Kind::tokens:
      return act_on_tokens(group, g, x, meaning.height, meaning.width, meaning.prefix);
    case Meaning::Kind::vector: return act_on_index(group, g, x);
    case Meaning::Kind::invariant: break;
  }
  return x;
}

std::vector<EquivarianceError> check_equivariance(const std::function<Tensor(const Tensor&)>& f,
                                                  const Group& group, const Tensor& x, const Meaning& input,
                                                  const Meaning& output) {
  const Tensor y = f(x);
  std::vector<EquivarianceError> errors;
  for (int g = 0; g < group.order(); ++g)
    errors.push_back(equivariance_error(g, f(act(group, g, x, input)), act(group, g, y, output)));
  return errors;
}

std::vector<EquivarianceError> check_equivariance(Module& module, const Group& group, const Tensor& x,
                                                  const Meaning& input, const Meaning& output) {
  const bool was_training = module.training();
  const NoGrad no_grad;
  module.eval();
  const auto f = [&module](const Tensor& value) { return module(Variable(value)).data(); };
  std::vector<EquivarianceError> errors;
  try {
    errors = check_equivariance(f, group, x, input, output);
  } catch (...) {
    module.train(was_training);
    throw;
  }
  module.train(was_training);
  return errors;
}

double worst_nmae(const std::vector<EquivarianceError>& errors) {
  double worst = 0;
  for (const EquivarianceError& e : errors) worst = std::max(worst, e.nmae);
  return worst;
}

}  // namespace gyre
