// Packed EQ-Linear: library products on whole planes, from any bilinear form of the group product (docs/math.md section 3):
//
//   forward   f = input·x         [P, N, C]     planes of the input
//             a_p = f_p · w_pᵀ    [P, N, D]     one dense product per plane
//             y = output·a + b    [N, D, T]
//   backward  g = outputᵀ·dy      [P, N, D]     planes of the gradient, shared by both products
//             dx = inputᵀ·(g_p · w_p),  dW = weightᵀ·(g_pᵀ · f_p)
//
// w = weight·W are the cached planes. For c4 five products of 1/16 the dense size do the work of one.

#include "core/parallel.h"
#include "kernels/cpu/eq_linear.h"
#include "kernels/cpu/eq_planes.h"
#include "kernels/cpu/gemm_f64.h"
#include "kernels/cpu/group_transform.h"

namespace gyre::kernels::cpu {
namespace {

using Packed = EqPlanes::State::Packed;

template <class T>
void gemm(const GemmShape& shape, const T* a, const T* b, T* c) {
  if constexpr (std::is_same_v<T, float>) gemm_f32(shape, a, b, c);
  else gemm_f64(shape, a, b, c);
}

template <class T>
Packed& planes_of(const BilinearForm& form, const Tensor& w, EqPlanes::State& state) {
  Packed& packed = state.packed;
  if (packed.source != EqPlanes::State::source_of(w) || packed.form != &form) {
    const std::int64_t d = w.size(0), c = w.size(1);
    packed.planes = Tensor::empty({form.products(), d, c}, w.dtype());
    to_planes(form.weight, d, c, w.data<T>(), packed.planes.mutable_data<T>());
    packed.source = EqPlanes::State::source_of(w);
    packed.form = &form;
    packed.forward = {};
    packed.backward = {};
    ++state.rebuilds;
  }
  return packed;
}

/// a [P, N, D] = f [P, N, C] times the planes transposed.
template <class T>
Tensor multiply_forward(Packed& packed, const Tensor& f, std::int64_t d) {
  const std::int64_t p = f.size(0), n = f.size(1), c = f.size(2);
  Tensor a = Tensor::empty({p, n, d}, f.dtype());
  if constexpr (std::is_same_v<T, float>) {
    if (!packed.forward.packed())
      packed.forward = PackedGemm::pack(p, c, d, packed.planes.data<float>(), d * c, 1, c, n);
    packed.forward.run(n, f.data<float>(), n * c, c, 1, a.mutable_data<float>(), n * d, d);
  } else {
    const GemmShape shape{p, n, d, c, n * c, c, 1, d * c, 1, c, n * d, d};
    gemm(shape, f.data<T>(), packed.planes.data<T>(), a.mutable_data<T>());
  }
  return a;
}

/// [P, N, C] = g [P, N, D] times the planes.
template <class T>
Tensor multiply_backward(Packed& packed, const Tensor& g, std::int64_t c) {
  const std::int64_t p = g.size(0), n = g.size(1), d = g.size(2);
  Tensor h = Tensor::empty({p, n, c}, g.dtype());
  if constexpr (std::is_same_v<T, float>) {
    if (!packed.backward.packed())
      packed.backward = PackedGemm::pack(p, d, c, packed.planes.data<float>(), d * c, c, 1, n);
    packed.backward.run(n, g.data<float>(), n * d, d, 1, h.mutable_data<float>(), n * c, c);
  } else {
    const GemmShape shape{p, n, c, d, n * d, d, 1, d * c, c, 1, n * c, c};
    gemm(shape, g.data<T>(), packed.planes.data<T>(), h.mutable_data<T>());
  }
  return h;
}

template <class T>
Tensor transform(const Matrix& m, const Tensor& x) {
  Tensor planes = Tensor::empty({m.rows, x.size(0), x.size(1)}, x.dtype());
  to_planes(m, x.size(0), x.size(1), x.data<T>(), planes.mutable_data<T>());
  return planes;
}

template <class T>
Tensor transform_back(const Matrix& m, const Tensor& planes, const Tensor& bias) {
  Tensor y = Tensor::empty({planes.size(1), planes.size(2), m.rows}, planes.dtype());
  from_planes(m, planes.size(1), planes.size(2), planes.data<T>(), bias.defined() ? bias.data<T>() : nullptr,
              y.mutable_data<T>());
  return y;
}

}  // namespace

Tensor packed_eq_linear_forward(const BilinearForm& form, const Tensor& x, const Tensor& w, const Tensor& b,
                               EqPlanes& cache) {
  return dispatch_floating(x.dtype(), "eq_linear", [&]<class T>(T) {
    const std::scoped_lock lock(cache.state().mutex);
    Packed& packed = planes_of<T>(form, w, cache.state());
    return transform_back<T>(form.output, multiply_forward<T>(packed, transform<T>(form.input, x), w.size(0)), b);
  });
}

LinearGrads packed_eq_linear_backward(const BilinearForm& form, const Tensor& x, const Tensor& w, const Tensor& grad,
                                     bool need_x, bool need_w, EqPlanes& cache) {
  return dispatch_floating(x.dtype(), "eq_linear", [&]<class T>(T) {
    const std::int64_t p = form.products(), n = x.size(0), c = x.size(1), d = w.size(0);
    const Tensor g = transform<T>(form.output.transposed(), grad);
    LinearGrads grads;
    if (need_x) {
      const std::scoped_lock lock(cache.state().mutex);
      Packed& packed = planes_of<T>(form, w, cache.state());
      grads.x = transform_back<T>(form.input.transposed(), multiply_backward<T>(packed, g, c), {});
    }
    if (need_w) {
      const Tensor f = transform<T>(form.input, x);
      Tensor products = Tensor::empty({p, d, c}, x.dtype());
      const GemmShape shape{p, d, c, n, n * d, 1, d, n * c, c, 1, d * c, c};
      gemm(shape, g.data<T>(), f.data<T>(), products.mutable_data<T>());
      grads.w = transform_back<T>(form.weight.transposed(), products, {});
    }
    return grads;
  });
}

}  // namespace gyre::kernels::cpu
