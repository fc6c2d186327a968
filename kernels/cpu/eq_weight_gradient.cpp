#include "kernels/cpu/eq_weight_gradient.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/parallel.h"
#include "kernels/cpu/group_permute.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/eq_weight_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/vector_math.h"

#ifndef GYRE_EQ_WEIGHT_GRADIENT_ONCE
#define GYRE_EQ_WEIGHT_GRADIENT_ONCE
namespace gyre::kernels::cpu {
constexpr std::int64_t panel_columns = 64;

/// One factor of the products: [rows, channels, T].
struct Factor {
  const float* data;
  std::int64_t channels;
};

/// The dense gradient has the channels of `broadcast` down and those of `vectors` across, whichever fill the
/// vectors better; lane t of fold[e] is the column that element e of the former adds to element t.
struct EqWeightGradient {
  std::int64_t rows;
  Factor broadcast, vectors;
  GroupTable fold;
  float* dw;
  std::int64_t dw_down, dw_across;  // floats between channels of either
};
}  // namespace gyre::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(Floats()));

/// Channels down a tile: 24 of 32 or 12 of 16 registers accumulate.
constexpr int most_channels(int order) { return std::max(1, (HWY_TARGET == HWY_AVX2 ? 6 : 12) / order); }

/// Adds the first `count` lanes of `sum` to dw where `add`, else stores them.
template <int T>
HWY_INLINE void put(hn::Vec<Floats> sum, bool add, float* dw, std::int64_t across, std::int64_t count) {
  const Floats d;
  if (across == T) {
    store_part(add ? hn::Add(load_part(d, dw, count), sum) : sum, d, dw, count);
    return;
  }
  HWY_ALIGN float lane[lanes];
  hn::Store(sum, d, lane);
  for (std::int64_t i = 0; i < count; i += T, dw += across)
    for (int t = 0; t < T; ++t) dw[t] = add ? dw[t] + lane[i + t] : lane[i + t];
}

/// `R` channels down and n columns across, in V vectors: the dense gradient [R·T, n] over `rows` rows, folded
/// before it leaves the registers.
template <int R, int T, int V>
HWY_NOINLINE void gradient_tile(const float* a, std::int64_t a_row, const float* b, std::int64_t b_row,
                                std::int64_t rows, const std::int32_t (*fold)[lanes], bool add, float* dw,
                                std::int64_t down, std::int64_t across, std::int64_t n) {
  const Floats d;
  const std::int64_t rest = n - (V - 1) * lanes;
  hn::Vec<Floats> sum[R * T][V];
  HWY_UNROLL(12)
  for (int i = 0; i < R * T; ++i) {
    sum[i][0] = hn::Zero(d);
    if constexpr (V == 2) sum[i][1] = hn::Zero(d);
  }
  for (std::int64_t row = 0; row < rows; ++row, a += a_row, b += b_row) {
    const auto last = load_part(d, b + (V - 1) * lanes, rest);
    const auto first = V == 2 ? hn::LoadU(d, b) : last;
    HWY_UNROLL(12)
    for (int i = 0; i < R * T; ++i) {
      const auto value = hn::Set(d, a[i]);
      sum[i][0] = hn::MulAdd(value, first, sum[i][0]);
      if constexpr (V == 2) sum[i][1] = hn::MulAdd(value, last, sum[i][1]);
    }
  }
  HWY_UNROLL(12)
  for (int i = 0; i < R; ++i, dw += down) {
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) {
      auto total = hn::Zero(d);
      HWY_UNROLL(8)
      for (int t = 0; t < T; ++t)
        total = hn::Add(total, hn::TableLookupLanes(sum[i * T + t][v], hn::SetTableIndices(d, fold[t])));
      put<T>(total, add, dw + v * lanes / T * across, across, v + 1 < V ? lanes : rest);
    }
  }
}

/// Columns [first, first + n) of the channels [begin, end) down, rows [row, row + rows).
template <int T, int V>
HWY_INLINE void gradient_columns(const EqWeightGradient& call, const std::int32_t (*fold)[lanes],
                                 std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t n,
                                 std::int64_t begin, std::int64_t end) {
  const std::int64_t a_row = call.broadcast.channels * T, b_row = call.vectors.channels * T;
  const auto tile = [&]<int R>(std::integral_constant<int, R>) {
    gradient_tile<R, T, V>(call.broadcast.data + row * a_row + begin * T, a_row,
                           call.vectors.data + row * b_row + first, b_row, rows, fold, row > 0,
                           call.dw + begin * call.dw_down + first / T * call.dw_across, call.dw_down,
                           call.dw_across, n);
    begin += R;
  };
  constexpr int most = most_channels(T);
  while (end - begin >= most) tile(std::integral_constant<int, most>());
  if constexpr (most > 2)
    if (end - begin >= 2) tile(std::integral_constant<int, 2>());
  while (begin < end) tile(std::integral_constant<int, 1>());
}

/// All rows of one column block while they are so few that x, turned by every element, stays in registers.
template <int N, int T, int V>
HWY_NOINLINE void gradient_of_rows(const EqWeightGradient& call, const std::int32_t (*fold)[lanes],
                                   std::int64_t first, std::int64_t n, std::int64_t begin, std::int64_t end) {
  const Floats d;
  const std::int64_t a_row = call.broadcast.channels * T, b_row = call.vectors.channels * T;
  const std::int64_t rest = n - (V - 1) * lanes;
  hn::Vec<Floats> turned[N * T][V];
  HWY_UNROLL(2)
  for (int row = 0; row < N; ++row) {
    const float* b = call.vectors.data + row * b_row + first;
    const auto last = load_part(d, b + (V - 1) * lanes, rest);
    const auto whole = V == 2 ? hn::LoadU(d, b) : last;
    HWY_UNROLL(8)
    for (int t = 0; t < T; ++t) {
      const auto turn = hn::SetTableIndices(d, fold[t]);
      turned[row * T + t][V - 1] = hn::TableLookupLanes(last, turn);
      if constexpr (V == 2) turned[row * T + t][0] = hn::TableLookupLanes(whole, turn);
    }
  }
  const float* a = call.broadcast.data + begin * T;
  float* dw = call.dw + begin * call.dw_down + first / T * call.dw_across;
  const std::int64_t down = call.dw_down, across = call.dw_across;
  for (; begin < end; ++begin, a += T, dw += down) {
    auto sum = hn::Zero(d), sum_last = hn::Zero(d);
    HWY_UNROLL(8)
    for (int i = 0; i < N * T; ++i) {
      const auto value = hn::Set(d, a[i / T * a_row + i % T]);
      sum_last = hn::MulAdd(value, turned[i][V - 1], sum_last);
      if constexpr (V == 2) sum = hn::MulAdd(value, turned[i][0], sum);
    }
    if constexpr (V == 2) put<T>(sum, false, dw, across, lanes);
    put<T>(sum_last, false, dw + (V - 1) * lanes / T * across, across, rest);
  }
}

/// Whether gradient_of_rows serves that many rows.
template <int T, int N>
constexpr bool stays_in_registers = N* T <= (HWY_TARGET == HWY_AVX2 ? 4 : 8);

constexpr std::int64_t block_rows = 256;  // summed at once: longer sums lose digits

/// Vectors that hold whole groups.
template <int T>
HWY_INLINE void gradient_by_vectors(const EqWeightGradient& call, std::int64_t first, std::int64_t last,
                                    std::int64_t begin, std::int64_t end) {
  constexpr int vectors = HWY_TARGET == HWY_AVX2 && T == 8 ? 1 : 2;
  HWY_ALIGN std::int32_t fold[T][lanes];
  for (int t = 0; t < T; ++t)
    for (std::int64_t i = 0; i < lanes; ++i)
      fold[t][i] = static_cast<std::int32_t>(i / T * T + call.fold[t][i % T]);
  // f(vectors, column, columns) for blocks of as many columns as fit that many vectors.
  const auto for_blocks = [&](const auto& f) {
    for (std::int64_t i = first; i < last; i += vectors * lanes) {
      const std::int64_t width = std::min(last - i, vectors * lanes);
      if (width > lanes) {
        f(std::integral_constant<int, vectors>(), i, width);
      } else {
        f(std::integral_constant<int, 1>(), i, width);
      }
    }
  };
  const auto few = [&]<int N>(std::integral_constant<int, N>) {
    for_blocks([&]<int V>(std::integral_constant<int, V>, std::int64_t i, std::int64_t width) {
      gradient_of_rows<N, T, V>(call, fold, i, width, begin, end);
    });
  };
  if constexpr (stays_in_registers<T, 1>)
    if (call.rows == 1) return few(std::integral_constant<int, 1>());
  if constexpr (stays_in_registers<T, 2>)
    if (call.rows == 2) return few(std::integral_constant<int, 2>());
  std::int64_t n = 0;
  do {  // once even without rows
    const std::int64_t rows = std::min(block_rows, call.rows - n);
    for_blocks([&]<int V>(std::integral_constant<int, V>, std::int64_t i, std::int64_t width) {
      gradient_columns<T, V>(call, fold, n, rows, i, width, begin, end);
    });
    n += rows;
  } while (n < call.rows);
}

template <int T>
HWY_INLINE void gradient_by_element(const EqWeightGradient& call, std::int64_t first, std::int64_t last,
                                    std::int64_t begin, std::int64_t end) {
  const auto [rows, down, across, fold, dw, dw_down, dw_across] = call;
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t column = first; column < last; ++column) {
      float sum = 0;
      for (std::int64_t n = 0; n < rows; ++n)
        for (int t = 0; t < T; ++t)
          sum += down.data[(n * down.channels + i) * T + t] *
                 across.data[n * across.channels * T + column / T * T + fold[t][column % T]];
      dw[i * dw_down + column / T * dw_across + column % T] = sum;
    }
}

template <int T>
void weight_gradient(const EqWeightGradient& call, std::int64_t panel, std::int64_t begin, std::int64_t end) {
  const std::int64_t first = panel * panel_columns,
                     last = std::min(call.vectors.channels * T, first + panel_columns);
  if constexpr (lanes % T == 0) {
    gradient_by_vectors<T>(call, first, last, begin, end);
  } else {
    gradient_by_element<T>(call, first, last, begin, end);
  }
}

void weight_gradient_1(const EqWeightGradient& call, std::int64_t panel, std::int64_t begin,
                       std::int64_t end) {
  weight_gradient<1>(call, panel, begin, end);
}
void weight_gradient_2(const EqWeightGradient& call, std::int64_t panel, std::int64_t begin,
                       std::int64_t end) {
  weight_gradient<2>(call, panel, begin, end);
}
void weight_gradient_4(const EqWeightGradient& call, std::int64_t panel, std::int64_t begin,
                       std::int64_t end) {
  weight_gradient<4>(call, panel, begin, end);
}
void weight_gradient_8(const EqWeightGradient& call, std::int64_t panel, std::int64_t begin,
                       std::int64_t end) {
  weight_gradient<8>(call, panel, begin, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gyre::kernels::cpu {
namespace {

HWY_EXPORT(weight_gradient_1);
HWY_EXPORT(weight_gradient_2);
HWY_EXPORT(weight_gradient_4);
HWY_EXPORT(weight_gradient_8);

constexpr std::int64_t task_products = 1 << 17;  // a few microseconds: less is not worth a second thread
constexpr std::int64_t block_channels = 12;      // down a task: whole tiles
constexpr std::int64_t few_columns = 16;         // floats of a vector of the widest instruction set

/// Whether x is broadcast and dy fills the vectors.
bool is_turned(int order, std::int64_t channels_in, std::int64_t channels_out) {
  return channels_in * order < few_columns && channels_out > channels_in;
}

/// Blocks of channels down for each panel of columns across.
struct Tasks {
  std::int64_t blocks, count, grain;

  Tasks(int order, std::int64_t rows, std::int64_t down, std::int64_t across)
      : blocks((down + block_channels - 1) / block_channels),
        count((across + panel_columns - 1) / panel_columns * blocks) {
    const std::int64_t products = std::max<std::int64_t>(1, rows * down * order * across);
    grain = std::max<std::int64_t>(1, (count * task_products + products - 1) / products);
  }
};

/// solved[s][r] = t such that index[t][r] = s.
GroupTable solved(int order, const GroupTable& index) {
  GroupTable table{};
  for (int t = 0; t < order; ++t)
    for (int r = 0; r < order; ++r) table[index[t][r]][r] = t;
  return table;
}

}  // namespace

Tensor eq_weight_gradient(const Group& group, const Tensor& x, const Tensor& dy) {
  const int order = group.order();
  const std::int64_t rows = x.size(0), c = x.size(1), d = dy.size(1);
  const GroupTable index = group_table(group, false);
  Tensor dw = Tensor::empty({d, c, order});
  const Factor in{x.data<float>(), c}, out{dy.data<float>(), d};
  EqWeightGradient call{rows, out, in, index, dw.mutable_data<float>(), c * order, order};
  if (is_turned(order, c, d)) {
    std::swap(call.broadcast, call.vectors);
    std::swap(call.dw_down, call.dw_across);
    call.fold = solved(order, index);
  }
  const auto task = order == 1   ? GYRE_CHOSEN(weight_gradient_1)
                    : order == 2 ? GYRE_CHOSEN(weight_gradient_2)
                    : order == 4 ? GYRE_CHOSEN(weight_gradient_4)
                                 : GYRE_CHOSEN(weight_gradient_8);
  const std::int64_t down = call.broadcast.channels, across = call.vectors.channels * order;
  const Tasks tasks(order, rows, down, across);
  // A thread's tasks lie beside each other: they share columns.
  parallel_for(0, tasks.count, tasks.grain, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t panel = begin / tasks.blocks, first = begin % tasks.blocks,
                         count = std::min(tasks.blocks - first, end - begin);
      task(call, panel, first * block_channels, std::min(down, (first + count) * block_channels));
      begin += count;
    }
  });
  return dw;
}

int eq_weight_gradient_parts(int order, std::int64_t rows, std::int64_t channels_in,
                             std::int64_t channels_out, int threads) {
  const bool turned = is_turned(order, channels_in, channels_out);
  const Tasks tasks(order, rows, turned ? channels_in : channels_out,
                    (turned ? channels_out : channels_in) * order);
  return static_cast<int>(std::clamp<std::int64_t>(tasks.count / tasks.grain, 1, threads));
}

}  // namespace gyre::kernels::cpu
#endif
