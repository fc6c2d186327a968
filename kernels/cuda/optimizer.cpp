#include "kernels/cuda/optimizer.h"

#include <vector>

#include "kernels/cpu/optimizer_loops.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/optimizer_launch.h"
#include "kernels/cuda/workspace.h"

namespace gyre::kernels::cuda {
namespace {

using Targets = std::span<Tensor>;
using Sources = std::span<const Tensor>;

/// The arrays of one type; lists left out are empty.
template <class T>
std::vector<UpdateItem<T>> items_of(Targets params, Sources grads, Targets m = {}, Targets v = {}) {
  std::vector<UpdateItem<T>> items;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].dtype() != dtype_of<T>() || grads[i].numel() == 0) continue;
    const auto in = [i](Targets list) { return list.empty() ? nullptr : list[i].template mutable_data<T>(); };
    items.push_back({in(params), grads[i].data<T>(), in(m), in(v), grads[i].numel()});
  }
  return items;
}

/// Calls launch(items, count) for the f32 tensors, then for the f64 ones.
template <class F>
void for_both_types(F launch) {
  launch(float{});
  launch(double{});
}

}  // namespace

void adamw_step(Targets params, Sources grads, Targets m, Targets v, const AdamWStep& options) {
  const cpu::AdamWFactors f(options);
  const AdamWFactors factors{f.decay, f.beta1,     f.beta2, f.step_size, f.inverse_correction,
                             f.eps,   f.grad_scale};
  for_both_types([&]<class T>(T) {
    const auto items = items_of<T>(params, grads, m, v);
    launch_adamw(items.data(), std::ssize(items), factors, stream_of(grads[0]));
  });
}

void sgd_step(Targets params, Sources grads, Targets buffers, const SgdStep& o) {
  const SgdFactors factors{o.lr, o.momentum, o.weight_decay, o.grad_scale, o.nesterov};
  for_both_types([&]<class T>(T) {
    const auto items = items_of<T>(params, grads, o.momentum == 0 ? Targets() : buffers);
    launch_sgd(items.data(), std::ssize(items), factors, stream_of(grads[0]));
  });
}

void lerp(Targets target, Sources source, double weight) {
  for_both_types([&]<class T>(T) {
    const auto items = items_of<T>(target, source);
    launch_lerp(items.data(), std::ssize(items), weight, stream_of(source[0]));
  });
}

void sum_squares(Sources grads, double& result) {
  result = 0;
  for_both_types([&]<class T>(T) {
    const auto items = items_of<T>({}, grads);
    if (items.empty()) return;
    const Device device = grads[0].device();
    Workspace<double> parts(sum_squares_workspace(items.data(), std::ssize(items)), device);
    Tensor sum = Tensor::empty({1}, DType::f64, device);
    launch_sum_squares(items.data(), std::ssize(items), parts.data(), sum.mutable_data<double>(),
                       stream_of(sum));
    result += sum.item();
  });
}

}  // namespace gyre::kernels::cuda
