// Flash EQ-Linear by library products on planes (docs/math.md section 3):
//
//   forward   f = input·x         [P, n, C]     planes of a slab of rows
//             a_p = f_p · w_pᵀ    [P, n, D]     one batch of products
//             y = output·a + b    [n, D, T]     with the activation
//   dX        the same with output and input transposed and exchanged, and w_p in place of w_pᵀ
//   dW        dW = weightᵀ·(g_pᵀ · f_p) for g = outputᵀ·dy, summed over the slabs
//
// w = weight·W are the cached planes. In f16 and bf16 the results of products stay in f32 until they are
// merged: rounded in between, the error would exceed twice that of the naive form.

#include <algorithm>

#include "kernels/cuda/blas.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/eq_linear.h"
#include "kernels/cuda/group_transform_launch.h"
#include "kernels/cuda/workspace.h"
#include "kernels/eq_planes.h"
#include "kernels/types.h"

namespace gyre::kernels::cuda {
namespace {

/// Bytes of planes that pass from kernel to kernel through the device's cache, and rows that products need.
constexpr std::int64_t slab_bytes = 32 << 20, least_rows = 1024;

GroupMatrix constants(const Matrix& m) {
  GroupMatrix result{m.rows, m.cols};
  require<ValueError>(has_group_transform(std::min(m.rows, m.cols), std::max(m.rows, m.cols)),
                      "eq_linear on CUDA knows no form of {} x {} constants", m.rows, m.cols);
  std::copy(m.values.begin(), m.values.end(), result.values);
  return result;
}

/// Rows of a slab, of `channels` plane elements each.
std::int64_t slab_rows(std::int64_t rows, std::int64_t products, std::int64_t channels, DType dtype) {
  const std::int64_t row = products * channels * static_cast<std::int64_t>(size_of(dtype));
  return std::min(rows, std::max(least_rows, slab_bytes / row / 32 * 32));
}

/// Planes [P, D, C] of W, from the cache.
Tensor planes_of(const BilinearForm& form, const Tensor& w, EqPlanes::State& state) {
  const std::scoped_lock lock(state.mutex);
  auto& cached = state.packed;
  if (!cached.source.is(w) || cached.form != &form) {
    const std::int64_t count = w.size(0) * w.size(1);
    Tensor planes = Tensor::empty({form.products(), w.size(0), w.size(1)}, w.dtype(), w.device());
    dispatch(w.dtype(), "eq_linear", [&]<class T>(std::type_identity<T>) {
      launch_to_planes(constants(form.weight), count, data_of<T>(w), count, mutable_data_of<T>(planes),
                       stream_of(w));
    });
    cached = {Source::of(w), &form, std::move(planes), {}, {}};
    ++state.rebuilds;
  }
  return cached.planes;
}

/// planes [P, n, C] of x [n, C, T].
template <class T>
void split(const GroupMatrix& m, const Tensor& x, Tensor& planes) {
  const std::int64_t count = x.size(0) * x.size(1);
  launch_to_planes(m, count, data_of<T>(x), count, mutable_data_of<T>(planes), stream_of(x));
}

/// y [n, D, T] of planes [P, n, D].
template <class P, class T>
void merge(const GroupMatrix& m, const Tensor& planes, const PlanesTo<T>& to, std::int64_t count) {
  launch_from_planes(m, count, count, data_of<P>(planes), to, stream_of(planes));
}

/// a [P, n, D] = f [P, n, C] · wᵀ per plane, or with w as it is if `transposed` (C and D exchanged).
void multiply(const Tensor& planes, bool transposed, std::int64_t n, const Tensor& f, Tensor& a) {
  const std::int64_t d = planes.size(1), c = planes.size(2), in = transposed ? d : c,
                     out = transposed ? c : d;
  GemmOptions options;
  options.f32_result = true;
  gemm(f.device(), f.dtype(),
       {planes.size(0), n, out, in, n * in, in, 1, d * c, transposed ? c : 1, transposed ? 1 : c, n * out,
        out},
       f.raw_data(), planes.raw_data(), a.raw_mutable_data(), options);
}

Tensor planes_for(std::int64_t products, std::int64_t rows, std::int64_t channels, DType dtype,
                  const Tensor& like) {
  return Tensor::empty({products, rows, channels}, dtype, like.device());
}

}  // namespace

void packed_eq_linear_forward(const EqForward& call, Tensor& y) {
  const Tensor weights = planes_of(call.form, call.w, call.cache.state());
  const std::int64_t products = weights.size(0), d = weights.size(1), c = weights.size(2),
                     rows = call.x.size(0);
  const std::int64_t most = slab_rows(rows, products, c + d, y.dtype());
  const GroupMatrix input = constants(call.form.input), output = constants(call.form.output);
  const bool gelu = call.activation == Activation::gelu;
  Tensor f = planes_for(products, most, c, y.dtype(), y);
  Tensor a = planes_for(products, most, d, wide_type(y.dtype()), y);
  for (std::int64_t first = 0; first < rows; first += most) {
    const std::int64_t n = std::min(most, rows - first);
    const Tensor x = call.x.slice(0, first, first + n);
    Tensor part = y.slice(0, first, first + n), sum;
    if (gelu && call.pre_activation) sum = call.pre_activation->slice(0, first, first + n);
    dispatch(y.dtype(), "eq_linear", [&]<class T>(std::type_identity<T>) {
      split<T>(input, x, f);
      multiply(weights, false, n, f, a);
      merge<SumOf<T>, T>(
          output, a, {mutable_data_of<T>(part), data_of<T>(call.b), d, gelu, mutable_data_of<T>(sum)}, n * d);
    });
  }
}

void packed_eq_linear_backward(const EqBackward& call, LinearGrads& grads) {
  const std::int64_t d = call.w.size(0), c = call.w.size(1), rows = call.x.size(0);
  const std::int64_t products = call.form.products();
  const std::int64_t most = slab_rows(rows, products, c + d, call.x.dtype());
  const GroupMatrix input = constants(call.form.input), output = constants(call.form.output.transposed()),
                    back = constants(call.form.input.transposed());
  const DType dtype = call.x.dtype(), sums_in = wide_type(dtype);
  Tensor g = planes_for(products, most, d, dtype, call.x), a, f, weights, sums;
  if (call.need_x) {
    weights = planes_of(call.form, call.w, call.cache.state());
    a = planes_for(products, most, c, sums_in, call.x);
  }
  if (call.need_w) {
    f = dtype == sums_in && call.need_x ? a : planes_for(products, most, c, dtype, call.x);
    sums = planes_for(products, d, c, sums_in, call.x);
  }
  for (std::int64_t first = 0; first < rows; first += most) {
    const std::int64_t n = std::min(most, rows - first);
    const Tensor x = call.x.slice(0, first, first + n), grad = call.grad.slice(0, first, first + n);
    dispatch(x.dtype(), "eq_linear", [&]<class T>(std::type_identity<T>) {
      split<T>(output, grad, g);
      if (call.need_x) {
        Tensor dx = grads.x.slice(0, first, first + n);
        multiply(weights, true, n, g, a);
        merge<SumOf<T>, T>(back, a, {mutable_data_of<T>(dx)}, n * c);
      }
      if (!call.need_w) return;
      split<T>(input, x, f);
      GemmOptions options;
      options.accumulate = first > 0;
      options.f32_result = true;
      gemm(g.device(), g.dtype(), {products, d, c, n, n * d, 1, d, n * c, c, 1, d * c, c}, g.raw_data(),
           f.raw_data(), sums.raw_mutable_data(), options);
    });
  }
  if (!call.need_w || rows == 0) return;
  dispatch(grads.w.dtype(), "eq_linear", [&]<class T>(std::type_identity<T>) {
    merge<T, T>(constants(call.form.weight.transposed()), sums, {mutable_data_of<T>(grads.w)}, d * c);
  });
}

}  // namespace gyre::kernels::cuda
