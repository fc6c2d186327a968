#include "kernels/cpu/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/parallel.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Sum of x[0, n): f64 over blocks, each summed in 4 vectors of 64 additions per lane.
template <class T>
HWY_INLINE double sum_contiguous(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lane_count(d);
  const std::int64_t block = 256 * lanes;
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(n, begin + block);
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    std::int64_t i = begin;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      s0 = hn::Add(s0, hn::LoadU(d, x + i));
      s1 = hn::Add(s1, hn::LoadU(d, x + i + lanes));
      s2 = hn::Add(s2, hn::LoadU(d, x + i + 2 * lanes));
      s3 = hn::Add(s3, hn::LoadU(d, x + i + 3 * lanes));
    }
    for (; i + lanes <= end; i += lanes) s0 = hn::Add(s0, hn::LoadU(d, x + i));
    if (i < end) s1 = hn::Add(s1, load_part(d, x + i, end - i));
    total += static_cast<double>(sum_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  }
  return total;
}

/// y[i] = Σ x[i n, (i + 1) n).
template <class T>
HWY_INLINE void sum_each_row(const T* x, std::int64_t rows, std::int64_t n, T* y) {
  for (std::int64_t i = 0; i < rows; ++i) y[i] = static_cast<T>(sum_contiguous(x + i * n, n));
}

/// N = 1 or 4 vectors of columns over all rows; `part` ≤ lanes counts the columns if N is 1.
template <int N, class T>
HWY_INLINE void sum_column_vectors(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t part,
                                   T* y) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lane_count(d);
  if constexpr (N == 4) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (std::int64_t r = 0; r < rows; ++r, x += stride) {
      s0 = hn::Add(s0, hn::LoadU(d, x));
      s1 = hn::Add(s1, hn::LoadU(d, x + lanes));
      s2 = hn::Add(s2, hn::LoadU(d, x + 2 * lanes));
      s3 = hn::Add(s3, hn::LoadU(d, x + 3 * lanes));
    }
    hn::StoreU(s0, d, y);
    hn::StoreU(s1, d, y + lanes);
    hn::StoreU(s2, d, y + 2 * lanes);
    hn::StoreU(s3, d, y + 3 * lanes);
  } else {
    auto sum = hn::Zero(d);
    if (part == lanes) {
      for (std::int64_t r = 0; r < rows; ++r, x += stride) sum = hn::Add(sum, hn::LoadU(d, x));
    } else {
      for (std::int64_t r = 0; r < rows; ++r, x += stride) sum = hn::Add(sum, load_part(d, x, part));
    }
    store_part(sum, d, y, part);
  }
}

/// y[k] = Σ over rows of x[row · stride + k], k < n.
template <class T>
HWY_INLINE void sum_row_block(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t n, T* y) {
  const std::int64_t lanes = lane_count(hn::ScalableTag<T>());
  std::int64_t k = 0;
  for (; k + 4 * lanes <= n; k += 4 * lanes) sum_column_vectors<4>(x + k, rows, stride, lanes, y + k);
  for (; k < n; k += lanes) sum_column_vectors<1>(x + k, rows, stride, std::min(lanes, n - k), y + k);
}

#define GYRE_DEFINE(T, SUFFIX)                                                                        \
  void sum_rows_##SUFFIX(const T* x, std::int64_t rows, std::int64_t n, T* y) {                       \
    sum_each_row(x, rows, n, y);                                                                      \
  }                                                                                                   \
  double sum_all_##SUFFIX(const T* x, std::int64_t n) { return sum_contiguous(x, n); }                \
  void sum_block_##SUFFIX(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t n, T* y) { \
    sum_row_block(x, rows, stride, n, y);                                                             \
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

GYRE_EXPORT(sum_rows);
GYRE_EXPORT(sum_all);
GYRE_EXPORT(sum_block);

constexpr std::int64_t grain = 16384;    // elements per task
constexpr std::int64_t block_rows = 64;  // rows that add up in T before f64 takes over
constexpr std::int64_t block_columns = 1024;
constexpr std::int64_t short_row = 16;  // below, a plain loop beats vectors

/// Tasks for `count` units of `cost` elements each; fixed by the thread count.
std::int64_t task_count(std::int64_t count, std::int64_t cost) {
  return std::clamp<std::int64_t>(count * cost / grain, 1, std::min<std::int64_t>(count, num_threads()));
}

/// Column sums of rows [0, rows) into f64 totals.
template <class T>
void add_columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t n, double* totals,
                 T* block) {
  const auto run = GYRE_DISPATCH(sum_block, T);
  for (std::int64_t r = 0; r < rows; r += block_rows) {
    run(x + r * stride, std::min(block_rows, rows - r), stride, n, block);
    for (std::int64_t k = 0; k < n; ++k) totals[k] += static_cast<double>(block[k]);
  }
}

template <class T>
void sum_last(const T* x, std::int64_t a, std::int64_t r, T* y) {
  if (r < short_row) {
    parallel_for(0, a, grain / r, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        T sum = 0;
        for (std::int64_t j = 0; j < r; ++j) sum += x[i * r + j];
        y[i] = sum;
      }
    });
  } else if (a >= num_threads()) {
    const auto run = GYRE_DISPATCH(sum_rows, T);
    parallel_for(0, a, std::max<std::int64_t>(1, grain / r), [&](std::int64_t first, std::int64_t last) {
      run(x + first * r, last - first, r, y + first);
    });
  } else {
    const auto run = GYRE_DISPATCH(sum_all, T);
    const std::int64_t tasks = task_count(r, 1);
    std::vector<double> parts(static_cast<std::size_t>(tasks));
    for (std::int64_t i = 0; i < a; ++i) {
      parallel_for(0, tasks, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t t = first; t < last; ++t) {
          const std::int64_t begin = r * t / tasks, end = r * (t + 1) / tasks;
          parts[static_cast<std::size_t>(t)] = run(x + i * r + begin, end - begin);
        }
      });
      double total = 0;
      for (const double part : parts) total += part;
      y[i] = static_cast<T>(total);
    }
  }
}

/// Few slabs of many rows: every task sums a range of rows.
template <class T>
void sum_by_rows(const T* x, std::int64_t r, std::int64_t k, T* y) {
  const std::int64_t tasks = task_count(r, k);
  const auto width = static_cast<std::size_t>(k);
  std::vector<double> totals(static_cast<std::size_t>(tasks) * width);
  parallel_for(0, tasks, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<T> block(width);
    for (std::int64_t t = first; t < last; ++t) {
      const std::int64_t begin = r * t / tasks, end = r * (t + 1) / tasks;
      add_columns(x + begin * k, end - begin, k, k, totals.data() + t * k, block.data());
    }
  });
  for (std::int64_t j = 0; j < k; ++j) {
    double total = 0;
    for (std::int64_t t = 0; t < tasks; ++t) total += totals[static_cast<std::size_t>(t * k + j)];
    y[j] = static_cast<T>(total);
  }
}

/// Rows are long or slabs many: every task sums all rows of its columns.
template <class T>
void sum_by_columns(const T* x, std::int64_t a, std::int64_t r, std::int64_t k, T* y) {
  parallel_for(0, a * k, std::max<std::int64_t>(1, grain / r), [&](std::int64_t first, std::int64_t last) {
    while (first < last) {
      const std::int64_t slab = first / k, column = first % k;
      std::int64_t n = std::min(k - column, last - first);
      const T* slab_x = x + slab * r * k + column;
      if (r <= block_rows) {
        GYRE_DISPATCH(sum_block, T)(slab_x, r, k, n, y + first);
      } else {
        std::array<double, block_columns> totals{};
        std::array<T, block_columns> block;
        n = std::min(n, block_columns);
        add_columns(slab_x, r, k, n, totals.data(), block.data());
        for (std::int64_t j = 0; j < n; ++j)
          y[first + j] = static_cast<T>(totals[static_cast<std::size_t>(j)]);
      }
      first += n;
    }
  });
}

}  // namespace

void sum_middle(const Tensor& x, std::int64_t a, std::int64_t r, std::int64_t k, Tensor& y) {
  dispatch_floating(x.dtype(), "sum", [&]<class T>(T) {
    if (r == 0) {
      y.zero_();
      return;
    }
    const T* px = x.data<T>();
    T* py = y.mutable_data<T>();
    const bool many_slabs = a >= 2 * num_threads(), long_rows = k >= 4096 || r < 2 * num_threads();
    if (k == 1) {
      sum_last(px, a, r, py);
    } else if (many_slabs || long_rows) {
      sum_by_columns(px, a, r, k, py);
    } else {
      for (std::int64_t i = 0; i < a; ++i) sum_by_rows(px + i * r * k, r, k, py + i * k);
    }
  });
}

void argmax_rows(const Tensor& x, std::vector<std::int64_t>& result) {
  const std::int64_t k = x.size(1);
  dispatch_floating(x.dtype(), "argmax_rows", [&]<class T>(T) {
    const T* px = x.data<T>();
    parallel_for(0, x.size(0), std::max<std::int64_t>(1, grain / k),
                 [&](std::int64_t first, std::int64_t last) {
                   for (std::int64_t i = first; i < last; ++i) {
                     const T* row = px + i * k;
                     std::int64_t best = 0;
                     for (std::int64_t j = 1; j < k && !std::isnan(row[best]); ++j)
                       if (row[j] > row[best] || std::isnan(row[j])) best = j;
                     result[static_cast<std::size_t>(i)] = best;
                   }
                 });
  });
}

}  // namespace gyre::kernels::cpu
#endif
