#include "kernels/cpu/eq_linear.h"
#include "kernels/cpu/eq_planes.h"
#include "kernels/cpu/group_permute.h"
#include "kernels/cpu/linear.h"

namespace gyre::kernels::cpu {
namespace {

using DenseLayer = EqPlanes::State::DenseEqLayer;

/// From the cache; outlives a rebuild by another thread.
std::shared_ptr<const DenseLayer> dense_layer(const Group& group, const Tensor& w, const Tensor& b,
                                              EqPlanes::State& state) {
  const auto bias_source = b.defined() ? EqPlanes::State::source_of(b) : EqPlanes::State::Source();
  const std::scoped_lock lock(state.mutex);
  auto& naive = state.naive;
  const auto source = EqPlanes::State::source_of(w);
  const bool stale = naive.source != source || naive.group != &group;
  if (!stale && (!b.defined() || naive.bias_source == bias_source)) return naive.dense;
  auto layer = std::make_shared<DenseLayer>();
  layer->matrix = stale ? expand_eq_weight(group, w) : naive.dense->matrix;
  if (b.defined())
    layer->bias =
        b.unsqueeze(1).expand({b.size(0), group.order()}).contiguous().reshape({b.size(0) * group.order()});
  state.rebuilds += stale;
  naive.source = source;
  naive.group = &group;
  naive.bias_source = bias_source;
  naive.dense = std::move(layer);
  return naive.dense;
}

/// dW[d,c,r] = Σ_t Σ_n dy[n,d,t]·x[n,c,t·r]. For few rows one product over t and n, with x once per element;
/// else dense gradients, whose sum over t follows.
Tensor weight_gradient(const Group& group, const Tensor& x, const Tensor& w, const Tensor& grad) {
  const int order = group.order();
  const std::int64_t n = x.size(0), c = w.size(1), d = w.size(0), row = c * order;
  if (n * (row + d) >= d * row) {
    Tensor dense = Tensor::empty({d * order, row}, w.dtype());
    if (dense.numel() > 0) linear_grad_w(x, grad, dense);
    return fold_eq_weight(group, dense, d, c);
  }
  Tensor dw = Tensor::empty({d, row}, w.dtype());
  Tensor turned = Tensor::empty({order * n, row}, w.dtype()), rows = Tensor::empty({order * n, d}, w.dtype());
  dispatch_floating(w.dtype(), "eq_linear", [&]<class T>(T) {
    repeat_permuted(order, group_table(group, false), n, c, row, n * row, x.data<T>(),
                    turned.mutable_data<T>());
    split_elements(order, n, d, grad.data<T>(), rows.mutable_data<T>());
  });
  linear_grad_w(turned, rows, dw);
  return dw.reshape(w.shape());
}

}  // namespace

Tensor naive_eq_linear_forward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& b,
                               EqPlanes& cache) {
  const auto dense = dense_layer(group, w, b, cache.state());
  Tensor y = Tensor::empty({x.size(0), w.size(0), w.size(2)}, x.dtype());
  if (y.numel() > 0)
    linear_forward(x, dense->matrix, b.defined() ? dense->bias : b, &cache.state().naive.packed.cpu(), y);
  return y;
}

LinearGrads naive_eq_linear_backward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& grad,
                                     bool need_x, bool need_w, EqPlanes& cache) {
  LinearGrads grads;
  if (need_x) {
    const auto dense = dense_layer(group, w, {}, cache.state());
    grads.x = Tensor::empty(x.shape(), x.dtype());
    if (x.numel() > 0) linear_grad_x(dense->matrix, grad, &cache.state().naive.packed.cpu(), grads.x);
  }
  if (need_w) grads.w = weight_gradient(group, x, w, grad);
  return grads;
}

}  // namespace gyre::kernels::cpu
