#include "kernels/cpu/layer_norm.h"

#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layer_norm.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Applies f(offset, load, store) to each vector of a row of n; load and store stop at its end.
template <class D, class F>
HWY_INLINE void for_each_vector(D d, std::int64_t n, F f) {
  using T = hn::TFromD<D>;
  const std::int64_t lanes = lane_count(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    f(
        i, [d](const T* p) HWY_ATTR { return hn::LoadU(d, p); },
        [d](auto v, T* p) HWY_ATTR { hn::StoreU(v, d, p); });
  if (i < n)
    f(
        i, [d, rest = n - i](const T* p) HWY_ATTR { return load_part(d, p, rest); },
        [d, rest = n - i](auto v, T* p) HWY_ATTR { store_part(v, d, p, rest); });
}

/// The sum over a row of x, or of to = x + r.
template <bool adds, class T>
HWY_INLINE T row_sum(const T* x, [[maybe_unused]] const T* r, [[maybe_unused]] T* to, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lane_count(d), whole = n - n % lanes;
  const auto whole_vector = [&](std::int64_t i) HWY_ATTR {
    auto v = hn::LoadU(d, x + i);
    if constexpr (adds) {
      v = hn::Add(v, hn::LoadU(d, r + i));
      hn::StoreU(v, d, to + i);
    }
    return v;
  };
  auto sum = hn::Zero(d), other = sum;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    sum = hn::Add(sum, whole_vector(i));
    other = hn::Add(other, whole_vector(i + lanes));
  }
  for (; i < whole; i += lanes) sum = hn::Add(sum, whole_vector(i));
  if (i < n) {
    auto v = load_part(d, x + i, n - i);
    if constexpr (adds) {
      v = hn::Add(v, load_part(d, r + i, n - i));
      store_part(v, d, to + i, n - i);
    }
    other = hn::Add(other, v);
  }
  return sum_lanes(d, hn::Add(sum, other));
}

/// Normalises x or, with `adds`, x + r, which `total` takes.
template <bool adds, class T>
HWY_INLINE void forward_rows(const T* x, const T* r, const T* gain, const T* bias, T eps, T* total, T* y,
                             T* mean, T* rstd, std::int64_t rows, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lane_count(d);
  const T count = static_cast<T>(n);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t start = row * n;
    const T* const v = (adds ? total : x) + start;
    const T center = row_sum<adds>(x + start, adds ? r + start : r, adds ? total + start : total, n) / count;
    // The second pass also measures how far `center` was rounded.
    const auto c = hn::Set(d, center);
    auto first = hn::Zero(d), second = first, first2 = first, second2 = first;
    std::int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const auto a = hn::Sub(hn::LoadU(d, v + i), c), b = hn::Sub(hn::LoadU(d, v + i + lanes), c);
      first = hn::Add(first, a);
      second = hn::MulAdd(a, a, second);
      first2 = hn::Add(first2, b);
      second2 = hn::MulAdd(b, b, second2);
    }
    for (; i < n; i += lanes) {
      const std::int64_t part = std::min(lanes, n - i);
      const auto a = hn::IfThenElseZero(first_lanes(d, part), hn::Sub(load_part(d, v + i, part), c));
      first = hn::Add(first, a);
      second = hn::MulAdd(a, a, second);
    }
    const T shift = sum_lanes(d, hn::Add(first, first2)) / count;
    const T variance = std::max(sum_lanes(d, hn::Add(second, second2)) / count - shift * shift, T(0));
    const T scale = T(1) / std::sqrt(variance + eps);
    mean[row] = center + shift;
    rstd[row] = scale;
    const auto s = hn::Set(d, scale), offset = hn::Set(d, -shift * scale);
    for_each_vector(d, n, [&](std::int64_t j, auto load, auto store) HWY_ATTR {
      const auto z = hn::MulAdd(hn::Sub(load(v + j), c), s, offset);
      store(hn::MulAdd(z, load(gain + j), load(bias + j)), y + start + j);
    });
  }
}

constexpr std::int64_t block = 4;  // rows per step of the backward: they stay in the first cache

/// dx of one block of rows, plus `outer` with `adds`; dgain and dbias [n] gain the block's column sums.
template <bool adds, class T>
HWY_INLINE void backward_block(const T* x, const T* gain, const T* mean, const T* rstd, const T* grad,
                               [[maybe_unused]] const T* outer, T* dx, T* dgain, T* dbias, std::int64_t rows,
                               std::int64_t n) {
  const hn::ScalableTag<T> d;
  const T count = static_cast<T>(n);
  T shift[block], slope[block];
  for (std::int64_t r = 0; r < rows; ++r) {
    const T *xr = x + r * n, *gr = grad + r * n;
    const auto center = hn::Set(d, mean[r]);
    auto sum = hn::Zero(d), dot = sum;
    for_each_vector(d, n, [&](std::int64_t j, auto load, auto) HWY_ATTR {
      const auto g = hn::Mul(load(gr + j), load(gain + j));
      sum = hn::Add(sum, g);
      dot = hn::MulAdd(g, hn::Sub(load(xr + j), center), dot);
      if constexpr (adds) hwy::Prefetch(outer + r * n + j);
    });
    // dx = rstd (g - Σg/n - z Σgz/n) with z = (x - mean) rstd.
    shift[r] = rstd[r] * sum_lanes(d, sum) / count;
    slope[r] = rstd[r] * rstd[r] * sum_lanes(d, dot) / count * rstd[r];
  }
  for_each_vector(d, n, [&](std::int64_t j, auto load, auto store) HWY_ATTR {
    const auto factor = load(gain + j);
    auto gain_sum = hn::Zero(d), bias_sum = gain_sum;
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto centered = hn::Sub(load(x + r * n + j), hn::Set(d, mean[r]));
      const auto g = load(grad + r * n + j);
      const auto scale = hn::Set(d, rstd[r]);
      bias_sum = hn::Add(bias_sum, g);
      gain_sum = hn::MulAdd(g, hn::Mul(centered, scale), gain_sum);
      const auto straight = hn::MulSub(hn::Mul(g, factor), scale, hn::Set(d, shift[r]));
      auto result = hn::NegMulAdd(centered, hn::Set(d, slope[r]), straight);
      if constexpr (adds) result = hn::Add(result, load(outer + r * n + j));
      store(result, dx + r * n + j);
    }
    store(hn::Add(load(dgain + j), gain_sum), dgain + j);
    store(hn::Add(load(dbias + j), bias_sum), dbias + j);
  });
}

template <bool adds, class T>
HWY_INLINE void backward_rows(const T* x, const T* gain, const T* mean, const T* rstd, const T* grad,
                              const T* outer, T* dx, T* dgain, T* dbias, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; r += block)
    backward_block<adds>(x + r * n, gain, mean + r, rstd + r, grad + r * n, adds ? outer + r * n : outer,
                         dx + r * n, dgain, dbias, std::min(block, rows - r), n);
}

#define GYRE_DEFINE(T, SUFFIX)                                                                           \
  void forward_##SUFFIX(const T* x, const T* r, const T* gain, const T* bias, T eps, T* total, T* y,     \
                        T* mean, T* rstd, std::int64_t rows, std::int64_t n) {                           \
    if (r != nullptr)                                                                                    \
      forward_rows<true>(x, r, gain, bias, eps, total, y, mean, rstd, rows, n);                          \
    else                                                                                                 \
      forward_rows<false>(x, r, gain, bias, eps, total, y, mean, rstd, rows, n);                         \
  }                                                                                                      \
  void backward_##SUFFIX(const T* x, const T* gain, const T* mean, const T* rstd, const T* grad,         \
                         const T* outer, T* dx, T* dgain, T* dbias, std::int64_t rows, std::int64_t n) { \
    if (outer != nullptr)                                                                                \
      backward_rows<true>(x, gain, mean, rstd, grad, outer, dx, dgain, dbias, rows, n);                  \
    else                                                                                                 \
      backward_rows<false>(x, gain, mean, rstd, grad, outer, dx, dgain, dbias, rows, n);                 \
  }
GYRE_DEFINE(float, f32)
GYRE_DEFINE(double, f64)
#undef GYRE_DEFINE

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gyre::kernels::cpu {
namespace {

GYRE_EXPORT(forward);
GYRE_EXPORT(backward);

constexpr std::int64_t grain = 8192;      // elements per task
constexpr std::int64_t flush_rows = 256;  // rows whose column sums add up in T before f64 takes over

/// A place in an array; none in none.
template <class T>
T* place(T* array, std::int64_t offset) {
  return array == nullptr ? nullptr : array + offset;
}

/// values [C], each `repeat` times.
template <class T>
std::vector<T> spread(const T* values, std::int64_t count, int repeat) {
  std::vector<T> spread_values;
  spread_values.reserve(static_cast<std::size_t>(count * repeat));
  for (std::int64_t c = 0; c < count; ++c)
    spread_values.insert(spread_values.end(), static_cast<std::size_t>(repeat), values[c]);
  return spread_values;
}

/// [tasks, C, T] → [C].
template <class T>
void collapse(const std::vector<double>& totals, std::int64_t channels, int repeat, T* result) {
  const std::int64_t width = channels * repeat, tasks = static_cast<std::int64_t>(totals.size()) / width;
  for (std::int64_t c = 0; c < channels; ++c) {
    double total = 0;
    for (std::int64_t t = 0; t < tasks; ++t)
      for (int k = 0; k < repeat; ++k) total += totals[static_cast<std::size_t>(t * width + c * repeat + k)];
    result[c] = static_cast<T>(total);
  }
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& r, const Tensor& gain, const Tensor& bias, int repeat,
                        double eps, Tensor& sum, Tensor& y, Tensor& mean, Tensor& rstd) {
  const std::int64_t n = x.size(1);
  dispatch_floating(x.dtype(), "layer_norm_forward", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(forward, T);
    const std::vector<T> gains = spread(gain.data<T>(), gain.numel(), repeat);
    const std::vector<T> biases = spread(bias.data<T>(), bias.numel(), repeat);
    const T *px = x.data<T>(), *pr = r.defined() ? r.data<T>() : nullptr;
    T *total = sum.defined() ? sum.mutable_data<T>() : nullptr, *py = y.mutable_data<T>(),
      *means = mean.mutable_data<T>(), *scales = rstd.mutable_data<T>();
    parallel_for(0, x.size(0), std::max<std::int64_t>(1, grain / n),
                 [&](std::int64_t first, std::int64_t last) {
                   const std::int64_t at = first * n;
                   run(px + at, place(pr, at), gains.data(), biases.data(), static_cast<T>(eps),
                       place(total, at), py + at, means + first, scales + first, last - first, n);
                 });
  });
}

void layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean, const Tensor& rstd,
                         const Tensor& grad, const Tensor& outer, int repeat, Tensor& dx, Tensor&,
                         Tensor& dgain, Tensor& dbias) {
  const std::int64_t rows = x.size(0), n = x.size(1);
  const std::int64_t tasks = std::clamp<std::int64_t>(x.numel() / grain, 1, num_threads());
  const auto width = static_cast<std::size_t>(n);
  dispatch_floating(x.dtype(), "layer_norm_backward", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(backward, T);
    const std::vector<T> gains = spread(gain.data<T>(), gain.numel(), repeat);
    const T *px = x.data<T>(), *pg = grad.data<T>(), *pm = mean.data<T>(), *pr = rstd.data<T>();
    const T* po = outer.defined() ? outer.data<T>() : nullptr;
    T* pdx = dx.mutable_data<T>();
    const std::size_t size = static_cast<std::size_t>(tasks) * width;
    std::vector<double> gain_totals(size), bias_totals(size);
    parallel_for(0, tasks, 1, [&](std::int64_t first_task, std::int64_t last_task) {
      std::vector<T> gain_sums(width), bias_sums(width);
      for (std::int64_t t = first_task; t < last_task; ++t) {
        const std::int64_t end = rows * (t + 1) / tasks;
        for (std::int64_t r = rows * t / tasks; r < end; r += flush_rows) {
          std::fill(gain_sums.begin(), gain_sums.end(), T(0));
          std::fill(bias_sums.begin(), bias_sums.end(), T(0));
          run(px + r * n, gains.data(), pm + r, pr + r, pg + r * n, place(po, r * n), pdx + r * n,
              gain_sums.data(), bias_sums.data(), std::min(flush_rows, end - r), n);
          for (std::size_t j = 0; j < width; ++j) {
            gain_totals[static_cast<std::size_t>(t) * width + j] += static_cast<double>(gain_sums[j]);
            bias_totals[static_cast<std::size_t>(t) * width + j] += static_cast<double>(bias_sums[j]);
          }
        }
      }
    });
    collapse(gain_totals, gain.numel(), repeat, dgain.mutable_data<T>());
    collapse(bias_totals, gain.numel(), repeat, dbias.mutable_data<T>());
  });
}

}  // namespace gyre::kernels::cpu
#endif
