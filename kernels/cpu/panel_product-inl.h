// Products of matrices that fit the second-level cache, the right one packed in panels. Compiled once per
// instruction set: include after hwy/highway.h.
#if defined(GYRE_PANEL_PRODUCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GYRE_PANEL_PRODUCT_INL_H
#undef GYRE_PANEL_PRODUCT_INL_H
#else
#define GYRE_PANEL_PRODUCT_INL_H
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {

constexpr int tile_rows = HWY_TARGET == HWY_AVX2 ? 6 : 12;  // 12 of 16 or 24 of 32 registers accumulate

/// Left factor: element (i, k) at data[i · row + k · column].
template <class T>
struct Left {
  const T* data;
  std::int64_t row, column;
};

/// Right factor in panels of two vectors, each [depth, panel] and zero beyond the last column.
template <class T>
struct Panels {
  const T* data;
  std::int64_t depth;
};

/// Rows `stride` apart.
template <class T>
struct Rows {
  T* data;
  std::int64_t stride;
};

template <class T>
constexpr std::int64_t vector_size = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
template <class T>
constexpr std::int64_t panel_size = 2 * vector_size<T>;

/// c [R, n] = alpha · a [R, depth] · b [depth, n] for one panel b, of which V vectors hold the n columns.
/// Plain arguments and a function of its own: structures and the caller's state would take registers from the
/// sums.
template <int R, int V, class T>
HWY_NOINLINE void product_tile(const T* a, std::int64_t a_row, std::int64_t a_column, const T* b,
                               std::int64_t depth, T alpha, T* c, std::int64_t c_stride, std::int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t lanes = vector_size<T>;
  hn::Vec<decltype(d)> sum[R][V];
  HWY_UNROLL(12)
  for (int i = 0; i < R; ++i) {
    sum[i][0] = hn::Zero(d);
    if constexpr (V == 2) sum[i][1] = hn::Zero(d);
  }
  for (std::int64_t k = 0; k < depth; ++k, a += a_column, b += panel_size<T>) {
    const auto b0 = hn::Load(d, b), b1 = hn::Load(d, b + (V - 1) * lanes);
    HWY_UNROLL(12)
    for (int i = 0; i < R; ++i) {
      const auto value = hn::Set(d, a[i * a_row]);
      sum[i][0] = hn::MulAdd(value, b0, sum[i][0]);
      if constexpr (V == 2) sum[i][1] = hn::MulAdd(value, b1, sum[i][1]);
    }
  }
  const auto factor = hn::Set(d, alpha);
  const std::int64_t rest = n - (V - 1) * lanes;
  HWY_UNROLL(12)
  for (int i = 0; i < R; ++i, c += c_stride) {
    if constexpr (V == 2) hn::StoreU(hn::Mul(factor, sum[i][0]), d, c);
    const auto last = hn::Mul(factor, sum[i][V - 1]);
    if (rest == lanes) {
      hn::StoreU(last, d, c + (V - 1) * lanes);
    } else {
      store_part(last, d, c + (V - 1) * lanes, rest);
    }
  }
}

/// All rows of one panel.
template <int V, class T>
HWY_INLINE void product_panel(const Left<T>& a, const T* b, std::int64_t depth, std::int64_t rows, T alpha,
                              const Rows<T>& c, std::int64_t n) {
  std::int64_t i = 0;
  const auto tile = [&]<int R>(std::integral_constant<int, R>) {
    product_tile<R, V>(a.data + i * a.row, a.row, a.column, b, depth, alpha, c.data + i * c.stride, c.stride,
                       n);
    i += R;
  };
  while (rows - i >= tile_rows) tile(std::integral_constant<int, tile_rows>());
  if constexpr (tile_rows > 8)
    if (rows - i >= 8) tile(std::integral_constant<int, 8>());
  if (rows - i >= 4) tile(std::integral_constant<int, 4>());
  if (rows - i >= 2) tile(std::integral_constant<int, 2>());
  if (rows - i >= 1) tile(std::integral_constant<int, 1>());
}

/// c [rows, n] = alpha · a [rows, depth] · b [depth, n].
template <class T>
HWY_INLINE void product(const Left<T>& a, const Panels<T>& b, std::int64_t rows, std::int64_t n, T alpha,
                        const Rows<T>& c) {
  for (std::int64_t j = 0; j < n; j += panel_size<T>) {
    const std::int64_t left = n - j;
    const T* panel = b.data + j * b.depth;
    const Rows<T> out{c.data + j, c.stride};
    if (left > vector_size<T>) {
      product_panel<2>(a, panel, b.depth, rows, alpha, out, std::min(left, panel_size<T>));
    } else {
      product_panel<1>(a, panel, b.depth, rows, alpha, out, left);
    }
  }
}

constexpr std::int64_t rows_ahead = 12;  // rows fetched early: short rows far apart defeat the prefetcher

/// Panels of from [depth, width], whose rows lie `stride` apart.
template <class T>
HWY_INLINE Panels<T> pack(const T* from, std::int64_t stride, std::int64_t depth, std::int64_t width, T* to) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t lanes = vector_size<T>, panel = panel_size<T>;
  for (std::int64_t k = 0; k < depth; ++k, from += stride)
    for (std::int64_t j = 0; j < width; j += panel) {
      T* out = to + j * depth + k * panel;
      if (k + rows_ahead < depth) {
        hwy::Prefetch(from + rows_ahead * stride + j);
        hwy::Prefetch(from + rows_ahead * stride + j + lanes);
      }
      const std::int64_t n = std::min(width - j, panel), rest = n > lanes ? n - lanes : 0;
      hn::Store(n >= lanes ? hn::LoadU(d, from + j) : load_part(d, from + j, n), d, out);
      hn::Store(rest == lanes ? hn::LoadU(d, from + j + lanes) : load_part(d, from + j + lanes, rest), d,
                out + lanes);
    }
  return {to, depth};
}

/// out[j · out_stride + i] = in[i · in_stride + j] for i, j < 4.
template <class T>
HWY_INLINE void transpose_block(const T* in, std::int64_t in_stride, T* out, std::int64_t out_stride) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    const hn::FixedTag<T, 4> d;
    const hn::RepartitionToWide<hn::RebindToUnsigned<decltype(d)>> pairs;
    const auto low = [&](auto a, auto b)
                         HWY_ATTR { return hn::BitCast(pairs, hn::InterleaveLower(d, a, b)); };
    const auto high = [&](auto a, auto b)
                          HWY_ATTR { return hn::BitCast(pairs, hn::InterleaveUpper(d, a, b)); };
    const auto r0 = hn::LoadU(d, in), r1 = hn::LoadU(d, in + in_stride),
               r2 = hn::LoadU(d, in + 2 * in_stride), r3 = hn::LoadU(d, in + 3 * in_stride);
    const auto a = low(r0, r1), b = low(r2, r3), c = high(r0, r1), e = high(r2, r3);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, a, b)), d, out);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, a, b)), d, out + out_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, c, e)), d, out + 2 * out_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, c, e)), d, out + 3 * out_stride);
    return;
  }
#endif
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) out[j * out_stride + i] = in[i * in_stride + j];
}

/// Panels of the transpose of from [width, depth], whose rows lie `stride` apart.
template <class T>
HWY_INLINE Panels<T> pack_transposed(const T* from, std::int64_t stride, std::int64_t width,
                                     std::int64_t depth, T* to) {
  constexpr std::int64_t panel = panel_size<T>;
  for (std::int64_t j = 0; j < width; j += panel) {
    T* out = to + j * depth;
    const std::int64_t n = std::min(width - j, panel), whole = panel % 4 == 0 ? n / 4 * 4 : 0;
    std::int64_t k = 0;
    for (; k + 4 <= depth; k += 4)
      for (std::int64_t i = 0; i < whole; i += 4)
        transpose_block(from + (j + i) * stride + k, stride, out + k * panel + i, panel);
    for (; k < depth; ++k)
      for (std::int64_t i = 0; i < whole; ++i) out[k * panel + i] = from[(j + i) * stride + k];
    for (std::int64_t i = whole; i < panel; ++i)
      for (k = 0; k < depth; ++k) out[k * panel + i] = i < n ? from[(j + i) * stride + k] : T(0);
  }
  return {to, depth};
}

}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif
