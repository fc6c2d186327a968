#include "core/parallel.h"
#include "kernels/cpu/eq_linear.h"
#include "kernels/cpu/eq_weight_gradient.h"
#include "kernels/cpu/group_permute.h"
#include "kernels/cpu/linear.h"
#include "kernels/eq_planes.h"

namespace gyre::kernels::cpu {
namespace {

Tensor weight_gradient(const Group& group, const Tensor& x, const Tensor& w, const Tensor& grad) {
  const int order = group.order();
  const std::int64_t n = x.size(0), c = w.size(1), d = w.size(0), row = c * order;
  if (w.dtype() == DType::f32 && order > 1 &&
      naive_folds_in_registers(order, n, c, d, in_parallel() ? 1 : num_threads()))
    return eq_weight_gradient(group, x, grad);
  Tensor dense = Tensor::empty({d * order, row}, w.dtype());
  if (dense.numel() > 0) linear_grad_w(x, grad, dense);
  return fold_eq_weight(group, dense, d, c);
}

}  // namespace

// For many rows the library blocks the product better, and folding its result costs little beside it, unless
// products are few and their rows stay in the caches.
bool naive_folds_in_registers(int order, std::int64_t rows, std::int64_t channels_in,
                              std::int64_t channels_out, int threads) {
  const std::int64_t most = threads == 1 ? 1 << 20 : 1 << 17;
  return rows <= 256 || (rows * channels_in * channels_out <= most &&
                         rows_in_caches(order, rows, channels_in, channels_out));
}

void naive_eq_linear_forward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& b,
                             EqPlanes& cache, Tensor& y) {
  const auto dense = dense_eq_layer(group, w, b, cache.state());
  if (y.numel() > 0)
    linear_forward(x, dense->matrix, b.defined() ? dense->bias : b, &cache.state().naive.packed.cpu(), y);
}

LinearGrads naive_eq_linear_backward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& grad,
                                     bool need_x, bool need_w, EqPlanes& cache) {
  LinearGrads grads;
  if (need_x) {
    const auto dense = dense_eq_layer(group, w, {}, cache.state());
    grads.x = Tensor::empty(x.shape(), x.dtype());
    if (x.numel() > 0) linear_grad_x(dense->matrix, grad, &cache.state().naive.packed.cpu(), grads.x);
  }
  if (need_w) grads.w = weight_gradient(group, x, w, grad);
  return grads;
}

}  // namespace gyre::kernels::cpu
