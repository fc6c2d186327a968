// Flash EQ-Linear, fused, f32. With the bilinear form of the group (docs/math.md section 3)
//
//   forward   y  = output · ((input · x) ∘ (weight · W)) + b
//   dX        dx = inputᵀ · ((outputᵀ · dy) ∘ (weight · W)ᵀ)         the same kernel with transposed planes
//   dW        dW = weightᵀ · Σ_n (outputᵀ · dy) ∘ (input · x)
//
// where ∘ is one dense product per plane. Tiles of rows are split into planes while they are packed,
// multiplied plane by plane, and merged again before they leave the caches: x is read once and y written
// once.

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/parallel.h"
#include "kernels/cpu/eq_linear.h"
#include "kernels/cpu/eq_weight_gradient.h"
#include "kernels/cpu/flash_costs.h"
#include "kernels/cpu/flash_kernels.h"
#include "kernels/cpu/scratch.h"
#include "kernels/eq_planes.h"

namespace gyre::kernels::cpu {
namespace {

/// The matrices of a form as the vector code takes them.
struct FloatForm {
  int order, products;
  std::vector<float> input, weight, output;  // [P, T] each

  /// Made once per form: small layers would feel it. Forms belong to groups, which live on.
  static const FloatForm& of(const BilinearForm& form) {
    static std::mutex mutex;
    static std::unordered_map<const BilinearForm*, FloatForm> made;
    const std::scoped_lock lock(mutex);
    return made.try_emplace(&form, form).first->second;
  }
  explicit FloatForm(const BilinearForm& form)
      : order(form.input.cols),
        products(form.products()),
        input(form.input.values.begin(), form.input.values.end()),
        weight(form.weight.values.begin(), form.weight.values.end()) {
    const Matrix transposed = form.output.transposed();
    output.assign(transposed.values.begin(), transposed.values.end());
  }

  FlashWeights weights(const Tensor& w) const {
    return {order, products, weight.data(), w.size(1), w.size(0)};
  }
  /// The plane of dy that holds the sum over the group: every group has its trivial representation.
  int sum_plane() const {
    for (int p = 0; p < products; ++p)
      if (std::all_of(output.begin() + p * order, output.begin() + (p + 1) * order,
                      [](float v) { return v == 1; }))
        return p;
    throw Error("a bilinear form without the sum over its group");
  }
};

/// Packed planes for forward (`transposed` = false) or dX, from the cache. Only this is done under its lock.
Tensor packed_planes(const BilinearForm& form, const FloatForm& floats, const Tensor& w, bool transposed,
                     EqPlanes::State& state) {
  const std::scoped_lock lock(state.mutex);
  auto& fused = state.fused;
  const std::int64_t d = w.size(0), c = w.size(1);
  const int lanes = flash_lanes();
  if (!fused.source.is(w) || fused.form != &form || fused.lanes != lanes) {
    fused = {Source::of(w), &form, lanes, {}, {}};
    ++state.rebuilds;
  }
  Tensor& packed = transposed ? fused.backward : fused.forward;
  if (!packed.defined()) {
    packed = Tensor::empty({packed_flash_size(form.products(), transposed ? d : c, transposed ? c : d)});
    pack_flash_weights(floats.weights(w), w.data<float>(), transposed, packed.mutable_data<float>());
  }
  return packed;
}

/// All rows and output channels, apart by rows, or by channels too where rows are few.
void multiply(const FlashProduct& product, std::int64_t rows) {
  // Products of a row as if their outputs filled whole vectors; a task takes a microsecond or more.
  constexpr std::int64_t task_products = 16384, least_rows = 6, least_columns = 32;
  const std::int64_t products =
      std::max<std::int64_t>(1, product.channels_in * round_up(product.channels_out, flash_lanes()));
  const std::int64_t threads = in_parallel() ? 1 : num_threads();
  const std::int64_t row_parts =
      std::clamp<std::int64_t>(rows / std::max(least_rows, task_products / products), 1, threads);
  const std::int64_t d = product.channels_out;
  const std::int64_t wanted = std::max<std::int64_t>(
      1, std::min({threads / row_parts, d / least_columns, rows * products / (row_parts * task_products)}));
  const std::int64_t columns = whole_panels((d + wanted - 1) / wanted),
                     column_parts = (d + columns - 1) / columns;
  parallel_for(0, row_parts * column_parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i % row_parts, column = i / row_parts * columns;
      flash_multiply(product.part(column, std::min(columns, d - column)), rows * row / row_parts,
                     rows * (row + 1) / row_parts);
    }
  });
}

}  // namespace

void flash_eq_linear_forward(const BilinearForm& form, const Tensor& x, const Tensor& w, const Tensor& b,
                             EqPlanes& cache, Activation activation, Tensor* pre_activation, Tensor& y) {
  const FloatForm& floats = FloatForm::of(form);
  const std::int64_t n = x.size(0), c = w.size(1), d = w.size(0);
  const Tensor packed = packed_planes(form, floats, w, false, cache.state());
  const bool gelu = activation == Activation::gelu;
  float* sum = nullptr;
  if (pre_activation) {
    *pre_activation = gelu ? Tensor::empty(y.shape()) : y;
    if (gelu) sum = pre_activation->mutable_data<float>();
  }
  FlashProduct product;
  product.order = floats.order;
  product.products = floats.products;
  product.split = floats.input.data();
  product.merge = floats.output.data();
  product.channels_in = c;
  product.channels_out = d;
  product.weights = packed.data<float>();
  product.bias = b.defined() ? b.data<float>() : nullptr;
  product.x = x.data<float>();
  product.y = y.mutable_data<float>();
  product.gelu = gelu;
  product.sum = sum;
  product.y_stride = d * floats.order;
  multiply(product, n);
}

LinearGrads flash_eq_linear_backward(const Group& group, const BilinearForm& form, const Tensor& x,
                                     const Tensor& w, const Tensor& grad, bool need_x, bool need_w,
                                     bool need_b, EqPlanes& cache) {
  const FloatForm& floats = FloatForm::of(form);
  const int order = floats.order, products = floats.products;
  const std::int64_t n = x.size(0), c = w.size(1), d = w.size(0);
  LinearGrads grads;
  Tensor packed;
  FlashProduct dx;
  dx.order = order;
  dx.products = products;
  dx.split = floats.output.data();
  dx.merge = floats.input.data();
  dx.channels_in = d;
  dx.channels_out = c;
  dx.x = grad.data<float>();
  dx.y_stride = c * order;
  if (need_x) {
    packed = packed_planes(form, floats, w, true, cache.state());
    grads.x = Tensor::empty({n, c, order});
    dx.weights = packed.data<float>();
    dx.y = grads.x.mutable_data<float>();
  }
  const std::int64_t whole = flash_sums_size(products, c, d);
  const FlashShape shape{order, products, n, c, d, in_parallel() ? 1 : num_threads()};
  const FlashGrid grid(shape);
  // One pass over dy serves both gradients while the sums stay in the cache.
  const bool together = need_x && need_w && grid.column_parts == 1 && whole <= 131072;
  const bool direct = need_w && dense_sums_win(shape);
  if (need_x && (!together || direct)) multiply(dx, n);
  if (direct) grads.w = eq_weight_gradient(group, x, grad);
  if (direct || (!need_w && !need_b)) return grads;

  const std::int64_t part = flash_sums_size(products, c, std::min(grid.columns, d));
  const int parts = grid.parts();
  Tensor sums = Tensor::empty({parts * part});
  float* to = sums.mutable_data<float>();
  FlashReduction reduction{order, products, floats.input.data(), floats.output.data(), floats.sum_plane(),
                           c,     d,        x.data<float>(),     grad.data<float>(),   d * order};
  const auto columns_of = [&](std::int64_t column_part) {
    return std::min(grid.columns, d - column_part * grid.columns);
  };
  parallel_for(0, parts, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t row_part = i % grid.row_parts, column_part = i / grid.row_parts;
      FlashReduction own = reduction;
      own.channels_out = columns_of(column_part);
      own.dy += column_part * grid.columns * order;
      std::fill_n(to + i * part, part, 0.0f);
      flash_reduce(own, together ? &dx : nullptr, n * row_part / grid.row_parts,
                   n * (row_part + 1) / grid.row_parts, to + i * part);
    }
  });
  if (need_w) grads.w = Tensor::empty(w.shape());
  if (need_b) grads.b = Tensor::empty({d});
  for (std::int64_t i = 0; i < grid.column_parts; ++i) {
    FlashWeights own = floats.weights(w);
    own.channels_out = columns_of(i);
    unpack_flash_sums(own, to + i * grid.row_parts * part, grid.row_parts, part,
                      need_w ? grads.w.mutable_data<float>() + i * grid.columns * c * order : nullptr,
                      need_b ? grads.b.mutable_data<float>() + i * grid.columns : nullptr);
  }
  return grads;
}

}  // namespace gyre::kernels::cpu
