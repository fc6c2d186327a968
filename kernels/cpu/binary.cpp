#include <algorithm>

#include "core/parallel.h"
#include "kernels/broadcast_loop.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/simd_targets.h"

#ifndef GYRE_KERNELS_CPU_BINARY_TILE_
#define GYRE_KERNELS_CPU_BINARY_TILE_
namespace gyre::kernels::cpu {
namespace {

/// `rows` rows of n elements; rows of a and b lie *_row apart, those of y are dense; *_step 0 repeats one
/// element.
template <class T>
struct Tile {
  const T* a;
  const T* b;
  T* y;
  std::int64_t rows, n, a_row, b_row, a_step, b_step;
};

}  // namespace
}  // namespace gyre::kernels::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/binary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

struct Add {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};
struct Subtract {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Sub(a, b);
  }
};
struct Multiply {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Mul(a, b);
  }
};
struct Divide {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Div(a, b);
  }
};

/// One operand repeated along the rows: binds a scalar, maps the other.
template <class F, class T>
HWY_INLINE void map_row(F f, const T* a, bool repeat_a, const T* b, bool repeat_b, T* y, std::int64_t n) {
  const hn::ScalableTag<T> d;
  if (!repeat_a && !repeat_b) {
    map(n, y, f, a, b);
  } else if (!repeat_a) {
    const auto value = hn::Set(d, *b);
    map(
        n, y, [&](auto tag, auto x) HWY_ATTR { return f(tag, x, value); }, a);
  } else if (!repeat_b) {
    const auto value = hn::Set(d, *a);
    map(
        n, y, [&](auto tag, auto x) HWY_ATTR { return f(tag, value, x); }, b);
  } else {
    const auto value = f(d, hn::Set(d, *a), hn::Set(d, *b));
    const std::int64_t lanes = lane_count(d);
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) hn::StoreU(value, d, y + i);
    if (i < n) store_part(value, d, y + i, n - i);
  }
}

template <class F, class T>
HWY_INLINE void binary_rows(const Tile<T>& t) {
  for (std::int64_t r = 0; r < t.rows; ++r)
    map_row(F(), t.a + r * t.a_row, t.a_step == 0, t.b + r * t.b_row, t.b_step == 0, t.y + r * t.n, t.n);
}

template <class T>
HWY_INLINE void binary_tile(BinaryOp op, const Tile<T>& tile) {
  switch (op) {
    case BinaryOp::add: return binary_rows<Add>(tile);
    case BinaryOp::sub: return binary_rows<Subtract>(tile);
    case BinaryOp::mul: return binary_rows<Multiply>(tile);
    case BinaryOp::div: return binary_rows<Divide>(tile);
  }
}

void binary_f32(BinaryOp op, const Tile<float>& tile) { binary_tile(op, tile); }
void binary_f64(BinaryOp op, const Tile<double>& tile) { binary_tile(op, tile); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gyre::kernels::cpu {
namespace {

GYRE_EXPORT(binary);

constexpr std::int64_t grain = 16384;  // elements per task

/// Calls run(tile) for pieces that cover elements [first, last) of the result.
template <class T, class F>
void for_each_tile(const BroadcastLoop& loop, const T* a, const T* b, T* y, std::int64_t first,
                   std::int64_t last, F run) {
  const int inner = loop.rank - 1;
  const std::int64_t n = loop.extent[inner];
  while (first < last) {
    std::int64_t rest = first / n, offset_a = 0, offset_b = 0, rows_left = 1, a_row = 0, b_row = 0;
    for (int dim = inner; dim-- > 0;) {
      const std::int64_t index = rest % loop.extent[dim];
      rest /= loop.extent[dim];
      offset_a += index * loop.a[dim];
      offset_b += index * loop.b[dim];
      if (dim + 1 == inner) {
        rows_left = loop.extent[dim] - index;
        a_row = loop.a[dim];
        b_row = loop.b[dim];
      }
    }
    const std::int64_t column = first % n, left = last - first;
    Tile<T> tile{a + offset_a, b + offset_b, y + first, 1, n, a_row, b_row, loop.a[inner], loop.b[inner]};
    if (column == 0 && left >= n) {
      tile.rows = std::min(rows_left, left / n);
    } else {
      tile.n = std::min(n - column, left);
      tile.a += column * tile.a_step;
      tile.b += column * tile.b_step;
    }
    run(tile);
    first += tile.rows * tile.n;
  }
}

}  // namespace

void binary(BinaryOp op, const Tensor& a, const Tensor& b, Tensor& y) {
  const BroadcastLoop loop = merge_dimensions(y.shape(), a.strides(), b.strides());
  dispatch_floating(y.dtype(), "binary", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(binary, T);
    const T* pa = a.data<T>();
    const T* pb = b.data<T>();
    T* py = y.mutable_data<T>();
    parallel_for(0, y.numel(), grain, [&](std::int64_t first, std::int64_t last) {
      for_each_tile(loop, pa, pb, py, first, last, [&](const Tile<T>& tile) { run(op, tile); });
    });
  });
}

}  // namespace gyre::kernels::cpu
#endif
