#include "kernels/cpu/eq_linear.h"
#include "kernels/cpu/eq_planes.h"

namespace gyre::kernels::cpu {
namespace {

/// The expanded matrix, from the cache; the tensor outlives a rebuild by another thread.
Tensor dense_matrix(const Group& group, const Tensor& w, EqPlanes& cache) {
  auto& state = cache.state();
  const std::scoped_lock lock(state.mutex);
  auto& naive = state.naive;
  if (naive.source != EqPlanes::State::source_of(w) || naive.group != &group) {
    naive.dense = expand_eq_weight(group, w);
    naive.source = EqPlanes::State::source_of(w);
    naive.group = &group;
    ++state.rebuilds;
  }
  return naive.dense;
}

/// [N, C, T] as rows of width C·T.
Tensor rows_of(const Tensor& x) { return x.reshape({x.size(0), x.size(1) * x.size(2)}); }

}  // namespace

Tensor naive_eq_linear_forward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& b,
                               EqPlanes& cache) {
  const Tensor dense = dense_matrix(group, w, cache);
  Tensor bias;
  if (b.defined())
    bias = b.unsqueeze(1).expand({b.size(0), group.order()}).reshape({b.size(0) * group.order()});
  return linear_forward(rows_of(x), dense, bias, &cache.state().naive.packed)
      .reshape({x.size(0), w.size(0), group.order()});
}

LinearGrads naive_eq_linear_backward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& grad,
                                     bool need_x, bool need_w, EqPlanes& cache) {
  const LinearGrads dense = linear_backward(rows_of(x), dense_matrix(group, w, cache), rows_of(grad), need_x,
                                            need_w, false, &cache.state().naive.packed);
  LinearGrads grads;
  if (need_x) grads.x = dense.x.reshape(x.shape());
  if (need_w) grads.w = fold_eq_weight(group, dense.w, w.size(0), w.size(1));
  return grads;
}

}  // namespace gyre::kernels::cpu
