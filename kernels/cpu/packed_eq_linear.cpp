// Flash EQ-Linear by library products on planes, from any bilinear form of the group product (docs/math.md
// section 3); f32 by oneDNN with packed weights, f64 by Eigen:
//
//   forward   f = input·x         [P, n, C]     planes of a block of rows
//             a_p = f_p · w_pᵀ    [P, n, D]     one dense product per plane
//             y = output·a + b    [n, D, T]
//   dX        the same with output and input transposed and exchanged, and w_p in place of w_pᵀ
//   dW        dW = weightᵀ·(g_pᵀ · f_p) for g = outputᵀ·dy, over all rows
//
// w = weight·W are the cached planes.

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/parallel.h"
#include "kernels/cpu/eq_linear.h"
#include "kernels/cpu/gemm_f64.h"
#include "kernels/cpu/group_transform.h"
#include "kernels/cpu/scratch.h"
#include "kernels/eq_planes.h"

namespace gyre::kernels::cpu {
namespace {

// Rows per block: enough for the products to run at full speed, few enough for planes to stay in the cache.
constexpr std::int64_t block_rows = 192;

using Packs = std::shared_ptr<const std::vector<PackedGemm>>;

/// Planes of W, for dX if `transposed`; f32 reads the packed ones. They outlive a rebuild by another thread.
struct Weights {
  Tensor planes;  // [P, D, C]
  bool transposed;
  Packs packs;

  std::int64_t products() const { return planes.size(0); }
  std::int64_t channels_in() const { return planes.size(transposed ? 1 : 2); }
  std::int64_t channels_out() const { return planes.size(transposed ? 2 : 1); }
  /// Strides of channels in and out within a plane.
  std::int64_t in_stride() const { return transposed ? planes.size(2) : 1; }
  std::int64_t out_stride() const { return transposed ? 1 : planes.size(2); }
};

Packs pack(const Weights& w) {
  auto packs = std::make_shared<std::vector<PackedGemm>>();
  const float* plane = w.planes.data<float>();
  for (std::int64_t p = 0; p < w.products(); ++p, plane += w.planes.size(1) * w.planes.size(2))
    packs->push_back(PackedGemm::pack(1, w.channels_in(), w.channels_out(), plane, 0, w.in_stride(),
                                      w.out_stride(), block_rows));
  return packs;
}

template <class T>
Weights weights_of(const BilinearForm& form, const Tensor& w, bool transposed, EqPlanes::State& state) {
  const std::scoped_lock lock(state.mutex);
  auto& cached = state.packed;
  if (!cached.source.is(w) || cached.form != &form) {
    const std::int64_t d = w.size(0), c = w.size(1);
    Tensor planes = Tensor::empty({form.products(), d, c}, w.dtype());
    to_planes(form.weight, d, c, w.data<T>(), planes.mutable_data<T>());
    cached = {Source::of(w), &form, std::move(planes), {}, {}};
    ++state.rebuilds;
  }
  Weights weights{cached.planes, transposed, {}};
  if constexpr (std::is_same_v<T, float>) {
    Packs& packs = transposed ? cached.backward : cached.forward;
    if (!packs) packs = pack(weights);
    weights.packs = packs;
  }
  return weights;
}

/// a_p = f_p · w_p for f [P, rows, in], a [P, rows, out].
void multiply_planes(const Weights& w, std::int64_t rows, const float* f, float* a) {
  const std::int64_t in = w.channels_in(), out = w.channels_out();
  for (const PackedGemm& plane : *w.packs) {
    plane.run(rows, f, 0, in, 1, a, 0, out);
    f += rows * in;
    a += rows * out;
  }
}

void multiply_planes(const Weights& w, std::int64_t rows, const double* f, double* a) {
  const std::int64_t p = w.products(), in = w.channels_in(), out = w.channels_out();
  gemm_f64({p, rows, out, in, rows * in, in, 1, in * out, w.in_stride(), w.out_stride(), rows * out, out}, f,
           w.planes.data<double>(), a);
}

/// output · ((input · x) ∘ w) + b, block by block.
template <class T>
void multiply(const Matrix& input, const Matrix& output, const Weights& w, const T* bias, const Tensor& x,
              Tensor& y) {
  const std::int64_t n = x.size(0), p = w.products(), in = w.channels_in(), out = w.channels_out();
  const T* from = x.data<T>();
  T* to = y.mutable_data<T>();
  const std::int64_t grain = std::max<std::int64_t>(12, 65536 / (in * out));
  parallel_for(0, n, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t most = std::min(block_rows, end - begin);
    const std::int64_t f_size = round_up(p * most * in, 16);  // whole lines
    const ThreadScratch<T> planes(f_size + p * most * out);
    T *f = planes.data(), *a = f + f_size;
    for (std::int64_t first = begin; first < end; first += most) {
      const std::int64_t rows = std::min(most, end - first);
      to_planes(input, rows, in, from + first * in * input.cols, f);
      multiply_planes(w, rows, f, a);
      from_planes(output, rows, out, a, bias, to + first * out * output.rows);
    }
  });
}

void gemm(const GemmShape& s, const float* a, const float* b, float* c) { gemm_f32(s, a, b, c); }
void gemm(const GemmShape& s, const double* a, const double* b, double* c) { gemm_f64(s, a, b, c); }

template <class T>
Tensor weight_gradient(const BilinearForm& form, const Tensor& x, const Tensor& grad, const Shape& shape) {
  const std::int64_t p = form.products(), n = x.size(0), c = shape[1], d = shape[0];
  const ScratchBuffer<T> f(p * n * c), g(p * n * d), sums(p * d * c);
  to_planes(form.input, n, c, x.data<T>(), f.data());
  to_planes(form.output.transposed(), n, d, grad.data<T>(), g.data());
  gemm({p, d, c, n, n * d, 1, d, n * c, c, 1, d * c, c}, g.data(), f.data(), sums.data());
  Tensor dw = Tensor::empty(shape, x.dtype());
  from_planes<T>(form.weight.transposed(), d, c, sums.data(), nullptr, dw.mutable_data<T>());
  return dw;
}

}  // namespace

void packed_eq_linear_forward(const BilinearForm& form, const Tensor& x, const Tensor& w, const Tensor& b,
                              EqPlanes& cache, Tensor& y) {
  dispatch_floating(x.dtype(), "eq_linear", [&]<class T>(T) {
    multiply(form.input, form.output, weights_of<T>(form, w, false, cache.state()),
             b.defined() ? b.data<T>() : nullptr, x, y);
  });
}

LinearGrads packed_eq_linear_backward(const BilinearForm& form, const Tensor& x, const Tensor& w,
                                      const Tensor& grad, bool need_x, bool need_w, EqPlanes& cache) {
  return dispatch_floating(x.dtype(), "eq_linear", [&]<class T>(T) {
    LinearGrads grads;
    if (need_x) {
      grads.x = Tensor::empty(x.shape(), x.dtype());
      multiply<T>(form.output.transposed(), form.input.transposed(),
                  weights_of<T>(form, w, true, cache.state()), nullptr, grad, grads.x);
    }
    if (need_w) grads.w = weight_gradient<T>(form, x, grad, w.shape());
    return grads;
  });
}

}  // namespace gyre::kernels::cpu
