#include "bench/eq_trial.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "core/random.h"
#include "kernels/elementwise.h"

namespace gyre {
namespace {

using kernels::Activation;
using kernels::EqBackend;
using kernels::EqDirection;
using kernels::LinearGrads;
using Clock = std::chrono::steady_clock;

double rel_l2(const Tensor& out, const Tensor& reference) {
  const auto a = out.to_vector(), b = reference.to_vector();
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(error / std::max(norm, 1e-300));
}

Tensor exact(const Tensor& x) { return x.defined() ? x.to(DType::f64) : x; }

std::size_t index_of(std::optional<EqBackend> backend) {
  return backend ? 1 + static_cast<std::size_t>(*backend) : 0;
}

}  // namespace

EqTrial::EqTrial(const EqSizes& sizes, std::uint64_t seed) : group_(Group::get(sizes.group)), sizes_(sizes) {
  const std::int64_t n = sizes.rows, c = sizes.channels_in, d = sizes.channels_out, order = group_.order();
  RandomStream stream(seed, Purpose::test);
  const double spread = 1 / std::sqrt(static_cast<double>(c * order));
  x_ = random_normal({n, c, order}, 1, stream);
  dy_ = random_normal({n, d, order}, 1, stream);
  w_ = random_normal({d, c, order}, spread, stream);
  if (sizes.bias) {
    b_ = random_normal({d}, 1, stream);
    dense_b_ = b_.unsqueeze(1).expand({d, order}).reshape({d * order});
  }
  dense_w_ = kernels::expand_eq_weight(group_, w_);
  flat_x_ = x_.reshape({n, c * order});
  flat_dy_ = dy_.reshape({n, d * order});
  if (sizes.activation == Activation::gelu) {
    h_ = random_normal({n, d, order}, 1, stream);
    flat_h_ = h_.reshape({n, d * order});
  }
}

Tensor EqTrial::gradient_before_activation(const Tensor& h, const Tensor& dy) const {
  if (sizes_.activation == Activation::none) return dy;
  return kernels::unary_backward(kernels::UnaryOp::gelu, h, Tensor(), dy);
}

void EqTrial::forward(std::optional<EqBackend> backend) {
  Contestant& own = contestants_[index_of(backend)];
  if (backend) {
    last_.y = kernels::eq_linear_forward(group_, x_, w_, b_, {*backend}, &own.planes, sizes_.activation);
    return;
  }
  const Tensor h = kernels::linear_forward(flat_x_, dense_w_, dense_b_, &own.packed);
  last_.y = sizes_.activation == Activation::gelu ? kernels::unary(kernels::UnaryOp::gelu, h) : h;
}

void EqTrial::backward(std::optional<EqBackend> backend) {
  Contestant& own = contestants_[index_of(backend)];
  last_.grads =
      backend ? kernels::eq_linear_backward(group_, x_, w_, gradient_before_activation(h_, dy_), true, true,
                                            sizes_.bias, {*backend}, &own.planes)
              : kernels::linear_backward(flat_x_, dense_w_, gradient_before_activation(flat_h_, flat_dy_),
                                         true, true, sizes_.bias, &own.packed);
}

void EqTrial::run(EqDirection direction, std::optional<EqBackend> backend) {
  return direction == EqDirection::forward ? forward(backend) : backward(backend);
}

double EqTrial::error(EqDirection direction) {
  const bool forward = direction == EqDirection::forward;
  auto& reference = exact_[forward ? 0 : 1];
  if (!reference) {
    reference.emplace();
    const kernels::EqLinearOptions plain{EqBackend::packed};
    const Tensor x = exact(x_), w = exact(w_);
    if (forward) {
      reference->y = kernels::eq_linear_forward(group_, x, w, exact(b_), plain, nullptr, sizes_.activation);
    } else {
      const Tensor grad = gradient_before_activation(exact(h_), exact(dy_));
      reference->grads = kernels::eq_linear_backward(group_, x, w, grad, true, true, sizes_.bias, plain);
    }
  }
  if (forward) return rel_l2(last_.y, reference->y);
  const LinearGrads &own = last_.grads, &right = reference->grads;
  return std::max(
      {rel_l2(own.x, right.x), rel_l2(own.w, right.w), own.b.defined() ? rel_l2(own.b, right.b) : 0});
}

std::string EqTrial::kernel(EqDirection direction, EqBackend backend) const {
  return kernels::eq_linear_kernel(group_, {backend}, DType::f32, sizes_.rows, sizes_.channels_in,
                                   sizes_.channels_out, direction);
}

void time_calls(std::span<const std::function<void()>> contestants, int rounds, double seconds,
                std::span<Runs> runs) {
  std::vector<std::function<double()>> measure;
  for (const auto& contestant : contestants) {
    contestant();
    const auto start = Clock::now();
    contestant();
    const int calls =
        static_cast<int>(std::clamp(1e3 * seconds / std::max(1e-5, milliseconds_since(start)), 1.0, 1e6));
    measure.emplace_back([&contestant, calls] {
      const auto begin = Clock::now();
      for (int call = 0; call < calls; ++call) contestant();
      return milliseconds_since(begin) / calls;
    });
  }
  run_alternating(rounds, measure, runs);
}

}  // namespace gyre
