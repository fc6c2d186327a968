#include "kernels/optimizer.h"

#include <cmath>
#include <vector>

#include "kernels/cpu/optimizer.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/op.h"

namespace gyre::kernels {
namespace {

using Targets = std::span<Tensor>;
using Sources = std::span<const Tensor>;

constexpr Op<Targets, Sources, Targets, Targets, const AdamWStep&> adamw_op{"adamw_step", cpu::adamw_step,
                                                                            GYRE_CUDA_OP(cuda::adamw_step)};
constexpr Op<Targets, Sources, Targets, const SgdStep&> sgd_op{"sgd_step", cpu::sgd_step,
                                                               GYRE_CUDA_OP(cuda::sgd_step)};
constexpr Op<Targets, Sources, double> lerp_op{"lerp_", cpu::lerp, GYRE_CUDA_OP(cuda::lerp)};
constexpr Op<Sources, double&> sum_squares_op{"global_norm", cpu::sum_squares,
                                              GYRE_CUDA_OP(cuda::sum_squares)};

void require_count(std::size_t count, std::size_t params, const char* list, const char* what) {
  require<ShapeError>(count == params, "{}: {} {} for {} tensors", what, count, list, params);
}

void require_floating(const Tensor& x, const char* what) {
  require<DTypeError>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{} takes f32 or f64, not {}", what,
                      x.dtype());
}

/// Written in place, hence dense. A model has hundreds of tensors: the checks that make texts come second.
void require_target(const Tensor& x, const Tensor& like, const char* what) {
  if (x.is_contiguous() && x.device() == like.device() && x.dtype() == like.dtype() &&
      x.shape() == like.shape())
    return;
  require<ShapeError>(x.is_contiguous(), "{}: a tensor of shape {} and strides {} is not dense", what,
                      x.shape(), x.strides());
  require_same_device(x, like, what);
  require_same_dtype(x, like, what);
  require_shape(x, like.shape(), what);
}

void require_rate(double value, double end, const char* name, const char* what) {
  require<ValueError>(value >= 0 && value < end, "{}: {} is {}, not in [0, {})", what, name, value, end);
}

/// The entries with a gradient, copied as handles: they share the caller's storage.
struct Selection {
  std::vector<Tensor> params, grads;
  std::vector<std::vector<Tensor>> states;
};

Selection select(Targets params, Sources grads, std::initializer_list<Targets> states, const char* what) {
  require_count(grads.size(), params.size(), "gradients", what);
  for (const Targets state : states) require_count(state.size(), params.size(), "state tensors", what);
  Selection chosen;
  chosen.states.resize(states.size());
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!grads[i].defined()) continue;
    require_floating(params[i], what);
    require_target(params[i], grads[i], what);
    chosen.params.push_back(params[i]);
    chosen.grads.push_back(grads[i].contiguous());
    auto list = chosen.states.begin();
    for (const Targets state : states) {
      require_target(state[i], params[i], what);
      (list++)->push_back(state[i]);
    }
  }
  return chosen;
}

}  // namespace

void adamw_step(Targets params, Sources grads, Targets m, Targets v, const AdamWStep& options) {
  require<ValueError>(options.step >= 1, "adamw_step: updates count from 1, not {}", options.step);
  require_rate(options.beta1, 1, "beta1", "adamw_step");
  require_rate(options.beta2, 1, "beta2", "adamw_step");
  Selection chosen = select(params, grads, {m, v}, "adamw_step");
  if (chosen.params.empty()) return;
  adamw_op(chosen.params[0].device(), chosen.params, chosen.grads, chosen.states[0], chosen.states[1],
           options);
}

void sgd_step(Targets params, Sources grads, Targets buffers, const SgdStep& options) {
  require_rate(options.momentum, 1, "momentum", "sgd_step");
  require<ValueError>(!options.nesterov || options.momentum > 0,
                      "sgd_step: nesterov needs a momentum above 0");
  const bool has_buffers = options.momentum > 0;
  Selection chosen =
      has_buffers ? select(params, grads, {buffers}, "sgd_step") : select(params, grads, {}, "sgd_step");
  if (chosen.params.empty()) return;
  sgd_op(chosen.params[0].device(), chosen.params, chosen.grads,
         has_buffers ? Targets(chosen.states[0]) : Targets(), options);
}

void lerp_(Targets target, Sources source, double weight) {
  Selection chosen = select(target, source, {}, "lerp_");
  if (chosen.params.empty()) return;
  lerp_op(chosen.params[0].device(), chosen.params, chosen.grads, weight);
}

double global_norm(Sources grads) {
  std::vector<Tensor> dense;
  for (const Tensor& g : grads) {
    if (!g.defined()) continue;
    require_floating(g, "global_norm");
    if (!dense.empty() && g.device() != dense[0].device()) require_same_device(g, dense[0], "global_norm");
    dense.push_back(g.contiguous());
  }
  if (dense.empty()) return 0;
  double sum = 0;
  sum_squares_op(dense[0].device(), dense, sum);
  return std::sqrt(sum);
}

}  // namespace gyre::kernels
