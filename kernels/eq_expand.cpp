#include <algorithm>
#include <type_traits>

#include "core/parallel.h"
#include "kernels/eq_linear.h"

namespace gyre::kernels {
namespace {

/// Rows of `row_elements` per task such that a task moves at least 64 kB.
std::int64_t grain_for(std::int64_t row_elements) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, row_elements));
}

/// to[n][t][c][s] = from[n][c][index[t][s]].
template <int T, class E>
void repeat(const int (&index)[T][T], std::int64_t rows, std::int64_t channels, const E* from, E* to) {
  parallel_for(0, rows, grain_for(channels * T * T), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t n = first; n < last; ++n)
      for (int t = 0; t < T; ++t) {
        const E* in = from + n * channels * T;
        E* out = to + (n * T + t) * channels * T;
        for (std::int64_t c = 0; c < channels; ++c, in += T, out += T)
          for (int s = 0; s < T; ++s) out[s] = in[index[t][s]];
      }
  });
}

/// to[d][c][r] = Σ_t from[d][t][c][t·r].
template <int T, class E>
void fold(const Group& group, std::int64_t outputs, std::int64_t channels, const E* from, E* to) {
  int index[T][T];
  for (int t = 0; t < T; ++t)
    for (int r = 0; r < T; ++r) index[t][r] = group.mul(t, r);
  parallel_for(0, outputs, grain_for(channels * T * T), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t d = first; d < last; ++d) {
      const E* in = from + d * T * channels * T;
      E* out = to + d * channels * T;
      for (std::int64_t c = 0; c < channels; ++c, in += T, out += T) {
        E sums[T] = {};
        for (int t = 0; t < T; ++t)
          for (int r = 0; r < T; ++r) sums[r] += in[t * channels * T + index[t][r]];
        std::copy_n(sums, T, out);
      }
    }
  });
}

/// Calls f with the order as a constant.
template <class F>
void dispatch_order(const Group& group, F&& f) {
  switch (group.order()) {
    case 1: return f(std::integral_constant<int, 1>());
    case 2: return f(std::integral_constant<int, 2>());
    case 4: return f(std::integral_constant<int, 4>());
    case 8: return f(std::integral_constant<int, 8>());
    default: throw ValueError(fmt::format("group {} has order {}", group.name(), group.order()));
  }
}

/// [N, C, T] → [N·T, C·T]; `inverse` takes t⁻¹ for t.
Tensor repeat_rows(const Group& group, const Tensor& x, bool inverse, std::string_view what) {
  require<ShapeError>(x.rank() == 3 && x.size(2) == group.order(), "{}: {} is not [N, C, {}] of group {}",
                      what, x.shape(), group.order(), group.name());
  const Tensor rows = x.contiguous();
  Tensor repeated = Tensor::empty({x.size(0) * x.size(2), x.size(1) * x.size(2)}, x.dtype());
  dispatch_floating(x.dtype(), what, [&]<class E>(E) {
    dispatch_order(group, [&](auto order) {
      int index[order][order];
      for (int t = 0; t < order; ++t)
        for (int s = 0; s < order; ++s) index[t][s] = group.mul(inverse ? group.inv(t) : t, s);
      repeat<order>(index, x.size(0), x.size(1), rows.data<E>(), repeated.mutable_data<E>());
    });
  });
  return repeated;
}

}  // namespace

Tensor expand_eq_weight(const Group& group, const Tensor& w) {
  return repeat_rows(group, w, true, "expand_eq_weight");
}

Tensor permute_eq_rows(const Group& group, const Tensor& x) {
  return repeat_rows(group, x, false, "permute_eq_rows");
}

Tensor fold_eq_weight(const Group& group, const Tensor& dense, std::int64_t channels_out,
                      std::int64_t channels_in) {
  require_shape(dense, {channels_out * group.order(), channels_in * group.order()}, "fold_eq_weight");
  const Tensor matrix = dense.contiguous();
  Tensor w = Tensor::empty({channels_out, channels_in, group.order()}, dense.dtype());
  dispatch_floating(dense.dtype(), "fold_eq_weight", [&]<class E>(E) {
    dispatch_order(group, [&](auto order) {
      fold<order>(group, channels_out, channels_in, matrix.data<E>(), w.mutable_data<E>());
    });
  });
  return w;
}

}  // namespace gyre::kernels
