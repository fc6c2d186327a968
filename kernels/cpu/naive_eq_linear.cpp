#include "kernels/cpu/eq_linear.h"
#include "kernels/cpu/eq_planes.h"
#include "kernels/cpu/linear.h"

namespace gyre::kernels::cpu {
namespace {

/// The expanded matrix and bias, from the cache; they outlive a rebuild by another thread.
struct Dense {
  Tensor matrix;  // [D·T, C·T]
  Tensor bias;    // [D·T] or undefined
};

Dense dense_layer(const Group& group, const Tensor& w, const Tensor& b, EqPlanes& cache) {
  auto& state = cache.state();
  const std::scoped_lock lock(state.mutex);
  auto& naive = state.naive;
  if (auto source = EqPlanes::State::source_of(w); naive.source != source || naive.group != &group) {
    naive.dense = expand_eq_weight(group, w);
    naive.source = source;
    naive.group = &group;
    naive.bias_source = {};
    ++state.rebuilds;
  }
  if (!b.defined() || group.order() == 1) return {naive.dense, b};
  if (auto source = EqPlanes::State::source_of(b); naive.bias_source != source) {
    naive.bias =
        b.unsqueeze(1).expand({b.size(0), group.order()}).contiguous().reshape({b.size(0) * group.order()});
    naive.bias_source = source;
  }
  return {naive.dense, naive.bias};
}

/// dW[d,c,r] = Σ_n Σ_t dy[n,d,t]·x[n,c,t·r]. The sum over t stands within the product, over rows that are
/// repeated once per t, or after the dense one: whichever moves less.
Tensor weight_gradient(const Group& group, const Tensor& x, const Tensor& w, const Tensor& grad) {
  const std::int64_t n = x.size(0), c = w.size(1), d = w.size(0), order = w.size(2);
  if (n * (c * order + 4 * d) < c * d * order) {
    Tensor dw = Tensor::empty({d, c * order}, w.dtype());
    const Tensor rows = grad.transpose(1, 2).contiguous();
    if (dw.numel() > 0) linear_grad_w(permute_eq_rows(group, x), rows, dw);
    return dw.reshape(w.shape());
  }
  Tensor dense = Tensor::empty({d * order, c * order}, w.dtype());
  if (dense.numel() > 0) linear_grad_w(x, grad, dense);
  return fold_eq_weight(group, dense, d, c);
}

}  // namespace

Tensor naive_eq_linear_forward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& b,
                               EqPlanes& cache) {
  const Dense dense = dense_layer(group, w, b, cache);
  Tensor y = Tensor::empty({x.size(0), w.size(0), w.size(2)}, x.dtype());
  if (y.numel() > 0) linear_forward(x, dense.matrix, dense.bias, &cache.state().naive.packed.cpu(), y);
  return y;
}

LinearGrads naive_eq_linear_backward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& grad,
                                     bool need_x, bool need_w, EqPlanes& cache) {
  LinearGrads grads;
  if (need_x) {
    const Dense dense = dense_layer(group, w, {}, cache);
    grads.x = Tensor::empty(x.shape(), x.dtype());
    if (x.numel() > 0) linear_grad_x(dense.matrix, grad, &cache.state().naive.packed.cpu(), grads.x);
  }
  if (need_w) grads.w = weight_gradient(group, x, w, grad);
  return grads;
}

}  // namespace gyre::kernels::cpu
