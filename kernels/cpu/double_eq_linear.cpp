// Flash EQ-Linear in f64, by library products on whole planes, from any bilinear form of the group product
// (docs/math.md section 3):
//
//   forward   f = input·x         [P, N, C]     planes of the input
//             a_p = f_p · w_pᵀ    [P, N, D]     one dense product per plane
//             y = output·a + b    [N, D, T]
//   backward  g = outputᵀ·dy      [P, N, D]     planes of the gradient, shared by both products
//             dx = inputᵀ·(g_p · w_p),  dW = weightᵀ·(g_pᵀ · f_p)
//
// w = weight·W are the cached planes.

#include <utility>

#include "kernels/cpu/eq_linear.h"
#include "kernels/cpu/eq_planes.h"
#include "kernels/cpu/gemm_f64.h"
#include "kernels/cpu/group_transform.h"

namespace gyre::kernels::cpu {
namespace {

/// weight·W [P, D, C], from the cache; the tensor outlives a rebuild by another thread.
Tensor planes_of(const BilinearForm& form, const Tensor& w, EqPlanes::State& state) {
  const std::scoped_lock lock(state.mutex);
  auto& cached = state.doubles;
  if (cached.source != EqPlanes::State::source_of(w) || cached.form != &form) {
    const std::int64_t d = w.size(0), c = w.size(1);
    Tensor planes = Tensor::empty({form.products(), d, c}, DType::f64);
    to_planes(form.weight, d, c, w.data<double>(), planes.mutable_data<double>());
    cached = {EqPlanes::State::source_of(w), &form, std::move(planes)};
    ++state.rebuilds;
  }
  return cached.planes;
}

Tensor transform(const Matrix& m, const Tensor& x) {
  Tensor planes = Tensor::empty({m.rows, x.size(0), x.size(1)}, DType::f64);
  to_planes(m, x.size(0), x.size(1), x.data<double>(), planes.mutable_data<double>());
  return planes;
}

Tensor transform_back(const Matrix& m, const Tensor& planes, const Tensor& bias) {
  Tensor y = Tensor::empty({planes.size(1), planes.size(2), m.rows}, DType::f64);
  from_planes(m, planes.size(1), planes.size(2), planes.data<double>(),
              bias.defined() ? bias.data<double>() : nullptr, y.mutable_data<double>());
  return y;
}

}  // namespace

Tensor double_eq_linear_forward(const BilinearForm& form, const Tensor& x, const Tensor& w, const Tensor& b,
                                EqPlanes& cache) {
  const std::int64_t p = form.products(), n = x.size(0), c = x.size(1), d = w.size(0);
  const Tensor planes = planes_of(form, w, cache.state()), f = transform(form.input, x);
  Tensor a = Tensor::empty({p, n, d}, DType::f64);
  gemm_f64({p, n, d, c, n * c, c, 1, d * c, 1, c, n * d, d}, f.data<double>(), planes.data<double>(),
           a.mutable_data<double>());
  return transform_back(form.output, a, b);
}

LinearGrads double_eq_linear_backward(const BilinearForm& form, const Tensor& x, const Tensor& w,
                                      const Tensor& grad, bool need_x, bool need_w, EqPlanes& cache) {
  const std::int64_t p = form.products(), n = x.size(0), c = x.size(1), d = w.size(0);
  const Tensor g = transform(form.output.transposed(), grad);
  LinearGrads grads;
  if (need_x) {
    const Tensor planes = planes_of(form, w, cache.state());
    Tensor h = Tensor::empty({p, n, c}, DType::f64);
    gemm_f64({p, n, c, d, n * d, d, 1, d * c, c, 1, n * c, c}, g.data<double>(), planes.data<double>(),
             h.mutable_data<double>());
    grads.x = transform_back(form.input.transposed(), h, {});
  }
  if (need_w) {
    const Tensor f = transform(form.input, x);
    Tensor sums = Tensor::empty({p, d, c}, DType::f64);
    gemm_f64({p, d, c, n, n * d, 1, d, n * c, c, 1, d * c, c}, g.data<double>(), f.data<double>(),
             sums.mutable_data<double>());
    grads.w = transform_back(form.weight.transposed(), sums, {});
  }
  return grads;
}

}  // namespace gyre::kernels::cpu
