// Flash EQ-Linear, fused, f32. With the bilinear form of the group (docs/math.md section 3)
//
//   forward   y  = output · ((input · x) ∘ (weight · W)) + b
//   dX        dx = inputᵀ · ((outputᵀ · dy) ∘ (weight · W)ᵀ)         the same kernel with transposed planes
//   dW        dW = weightᵀ · Σ_n (outputᵀ · dy) ∘ (input · x)
//
// where ∘ is one dense product per plane. Tiles of rows are transformed while they are packed, multiplied
// plane by plane, and transformed back before they leave the first-level cache: x is read once and y written
// once.

#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "kernels/cpu/eq_linear.h"
#include "kernels/cpu/eq_planes.h"
#include "kernels/cpu/flash_kernels.h"
#include "kernels/cpu/group_transform.h"

namespace gyre::kernels::cpu {
namespace {

std::vector<float> floats(const Matrix& m) { return {m.values.begin(), m.values.end()}; }

/// Packed planes for forward (`transposed` = false) or dX, from the cache.
const float* packed_planes(const BilinearForm& form, const Tensor& w, bool transposed,
                           EqPlanes::State& state) {
  auto& fused = state.fused;
  const std::int64_t d = w.size(0), c = w.size(1), plane = d * c;
  const int products = form.products();
  if (fused.source != EqPlanes::State::source_of(w) || fused.form != &form || fused.panel != flash_panel()) {
    fused = {EqPlanes::State::source_of(w), &form, flash_panel(), Tensor::empty({products, d, c}), {}, {}};
    to_planes(form.weight, d, c, w.data<float>(), fused.planes.mutable_data<float>());
    ++state.rebuilds;
  }
  Tensor& packed = transposed ? fused.backward : fused.forward;
  if (!packed.defined()) {
    const std::int64_t in = transposed ? d : c, out = transposed ? c : d;
    packed = Tensor::empty({packed_flash_size(products, in, out)});
    pack_flash_weights(products, in, out, fused.planes.data<float>(), plane, transposed ? c : 1,
                       transposed ? 1 : c, packed.mutable_data<float>());
  }
  return packed.data<float>();
}

Tensor multiply(const Matrix& input, const Matrix& output, const float* weights, std::int64_t channels_out,
                const float* bias, const Tensor& x) {
  const std::int64_t rows = x.size(0);
  Tensor y = Tensor::empty({rows, channels_out, output.rows});
  const auto in = floats(input), out = floats(output);
  const FlashProduct product{output.rows,  input.rows, in.data(), out.data(),      x.size(1),
                             channels_out, weights,    bias,      x.data<float>(), y.mutable_data<float>()};
  const std::int64_t grain =
      std::max<std::int64_t>(12, 65536 / std::max<std::int64_t>(1, channels_out * x.size(1)));
  parallel_for(0, rows, grain,
               [&](std::int64_t first, std::int64_t last) { flash_multiply(product, first, last); });
  return y;
}

}  // namespace

Tensor flash_eq_linear_forward(const BilinearForm& form, const Tensor& x, const Tensor& w, const Tensor& b,
                               EqPlanes& cache) {
  const std::scoped_lock lock(cache.state().mutex);
  return multiply(form.input, form.output, packed_planes(form, w, false, cache.state()), w.size(0),
                  b.defined() ? b.data<float>() : nullptr, x);
}

LinearGrads flash_eq_linear_backward(const BilinearForm& form, const Tensor& x, const Tensor& w,
                                     const Tensor& grad, bool need_x, bool need_w, bool need_b,
                                     EqPlanes& cache) {
  const std::int64_t n = x.size(0), c = w.size(1), d = w.size(0);
  const Matrix output_t = form.output.transposed();
  LinearGrads grads;
  if (need_x) {
    const std::scoped_lock lock(cache.state().mutex);
    grads.x = multiply(output_t, form.input.transposed(), packed_planes(form, w, true, cache.state()), c,
                       nullptr, grad);
  }
  if (need_w || need_b) {
    const auto in = floats(form.input), out = floats(output_t);
    const FlashReduction reduction{
        static_cast<int>(w.size(2)), form.products(), in.data(), out.data(), c, d, x.data<float>(),
        grad.data<float>()};
    // Each thread sums its rows; partial sums are added in thread order.
    const std::int64_t sums = form.products() * d * c;
    const int parts = in_parallel() || n < 64 ? 1 : num_threads();
    Tensor partial = Tensor::zeros({parts, sums + d});
    float* to = partial.mutable_data<float>();
    parallel_for(0, parts, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t part = first; part < last; ++part) {
        float* own = to + part * (sums + d);
        flash_reduce(reduction, n * part / parts, n * (part + 1) / parts, own, need_b ? own + sums : nullptr);
      }
    });
    parallel_for(0, sums + d, 16384, [&](std::int64_t first, std::int64_t last) {
      for (int part = 1; part < parts; ++part)
        for (std::int64_t i = first; i < last; ++i) to[i] += to[part * (sums + d) + i];
    });
    if (need_w) {
      grads.w = Tensor::empty(w.shape());
      from_planes<float>(form.weight.transposed(), d, c, to, nullptr, grads.w.mutable_data<float>());
    }
    if (need_b) {
      grads.b = Tensor::empty({d});
      std::copy_n(to + sums, d, grads.b.mutable_data<float>());
    }
  }
  return grads;
}

}  // namespace gyre::kernels::cpu
