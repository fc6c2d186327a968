// Tiles of Flash EQ-Linear: rows are split into planes while they are packed, multiplied plane by plane, and
// merged again. Compiled once per instruction set: include after hwy/highway.h.
//
// Inside a full vector, channels stand in the order that the cheapest shuffles leave (shuffled_channels);
// weights, bias and gradients follow it, so that it is never seen outside. The last, incomplete vector keeps
// the natural order.
#if defined(GYRE_FLASH_TILES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GYRE_FLASH_TILES_INL_H
#undef GYRE_FLASH_TILES_INL_H
#else
#define GYRE_FLASH_TILES_INL_H
#endif

#include <array>
#include <cstdint>

#include <hwy/cache_control.h>

#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using V = hn::Vec<F32>;
constexpr int vector_lanes = static_cast<int>(hn::MaxLanes(F32()));
constexpr int panel = 2 * vector_lanes;                 // output channels of a tile
constexpr int tile_rows = vector_lanes >= 16 ? 12 : 6;  // 24 of 32, or 12 of 16 registers accumulate
constexpr std::int64_t k_block = 256;  // channels per accumulator chain: bounds rounding errors

/// The planes of one matrix m [P, T]: split gives m · v, merge gives mᵀ · planes.
template <int G>
struct DenseTransform {
  static constexpr int order = G;
  int products;
  const float* m;

  HWY_INLINE void split(const V* v, float* out, std::int64_t plane) const {
    const F32 d;
    for (int p = 0; p < products; ++p) hn::Store(combine<G>(d, m + p * G, v), d, out + p * plane);
  }
  HWY_INLINE void merge(const float* in, std::int64_t plane, V start, V* v) const {
    const F32 d;
    for (int t = 0; t < G; ++t) v[t] = start;
    for (int p = 0; p < products; ++p) {
      const V a = hn::Load(d, in + p * plane);
      for (int t = 0; t < G; ++t) v[t] = hn::MulAdd(hn::Set(d, m[p * G + t]), a, v[t]);
    }
  }
};

/// The five planes of quarter turns by additions alone: sum, alternating sum, e + o, and e = v0 - v2 with a
/// sign in slot `even`, o = v3 - v1 in the other of 3 and 4.
struct QuarterTransform {
  static constexpr int order = 4;
  int even;
  float sign;

  HWY_INLINE void split(const V* v, float* out, std::int64_t plane) const {
    const F32 d;
    const V s = hn::Add(v[0], v[2]), q = hn::Add(v[1], v[3]);
    const V e = hn::Sub(v[0], v[2]), o = hn::Sub(v[3], v[1]);
    hn::Store(hn::Add(s, q), d, out);
    hn::Store(hn::Sub(s, q), d, out + plane);
    hn::Store(hn::Add(e, o), d, out + 2 * plane);
    hn::Store(hn::Mul(hn::Set(d, sign), e), d, out + even * plane);
    hn::Store(o, d, out + (7 - even) * plane);
  }
  HWY_INLINE void merge(const float* in, std::int64_t plane, V start, V* v) const {
    const F32 d;
    const V p0 = hn::Add(start, hn::Load(d, in)), p1 = hn::Load(d, in + plane),
            p2 = hn::Load(d, in + 2 * plane);
    const V a1 = hn::MulAdd(hn::Set(d, sign), hn::Load(d, in + even * plane), p2);
    const V a3 = hn::Add(p2, hn::Load(d, in + (7 - even) * plane));
    const V u = hn::Add(p0, p1), w = hn::Sub(p0, p1);
    v[0] = hn::Add(u, a1);
    v[1] = hn::Sub(w, a3);
    v[2] = hn::Sub(u, a1);
    v[3] = hn::Add(w, a3);
  }
  /// The same from registers, the plane of e before that of o.
  HWY_INLINE void merge(const V* p, V start, V* v) const {
    const F32 d;
    const V p0 = hn::Add(start, p[0]);
    const V a1 = hn::MulAdd(hn::Set(d, sign), p[3], p[2]), a3 = hn::Add(p[2], p[4]);
    const V u = hn::Add(p0, p[1]), w = hn::Sub(p0, p[1]);
    v[0] = hn::Add(u, a1);
    v[1] = hn::Sub(w, a3);
    v[2] = hn::Sub(u, a1);
    v[3] = hn::Add(w, a3);
  }
};

/// Sum and difference: the two planes of a group of two, in both directions.
struct PairTransform {
  static constexpr int order = 2;

  HWY_INLINE void split(const V* v, float* out, std::int64_t plane) const {
    const F32 d;
    hn::Store(hn::Add(v[0], v[1]), d, out);
    hn::Store(hn::Sub(v[0], v[1]), d, out + plane);
  }
  HWY_INLINE void merge(const float* in, std::int64_t plane, V start, V* v) const {
    const F32 d;
    const V a = hn::Add(start, hn::Load(d, in)), b = hn::Load(d, in + plane);
    v[0] = hn::Add(a, b);
    v[1] = hn::Sub(a, b);
  }
};

inline bool is_pair(int order, int products, const float* m) {
  return order == 2 && products == 2 && m[0] == 1 && m[1] == 1 && m[2] == 1 && m[3] == -1;
}

/// Whether m [5, 4] is the matrix of a QuarterTransform.
inline bool is_quarter(int order, int products, const float* m, QuarterTransform& quarter) {
  if (order != 4 || products != 5) return false;
  const auto row_is = [&](int p, float a, float b, float c, float d) {
    return m[p * 4] == a && m[p * 4 + 1] == b && m[p * 4 + 2] == c && m[p * 4 + 3] == d;
  };
  if (!row_is(0, 1, 1, 1, 1) || !row_is(1, 1, -1, 1, -1) || !row_is(2, 1, -1, -1, 1)) return false;
  for (const int even : {3, 4})
    for (const float sign : {1.0f, -1.0f})
      if (row_is(even, sign, 0, -sign, 0) && row_is(7 - even, 0, -1, 0, 1)) {
        quarter = {even, sign};
        return true;
      }
  return false;
}

/// f with the order of the group as its template argument.
template <class F>
void with_order(int order, const F& f) {
  switch (order) {
    case 1: return f.template operator()<1>();
    case 2: return f.template operator()<2>();
    case 4: return f.template operator()<4>();
    default: return f.template operator()<8>();
  }
}

/// f(first, second) with the fastest transforms for two matrices [P, T] of one form.
template <class F>
void with_transforms(int order, int products, const float* first, const float* second, const F& f) {
  QuarterTransform a{}, b{};
  if (is_quarter(order, products, first, a) && is_quarter(order, products, second, b)) return f(a, b);
  if (is_pair(order, products, first) && is_pair(order, products, second))
    return f(PairTransform(), PairTransform());
  with_order(order, [&]<int G>() {
    f(DenseTransform<G>{products, first}, DenseTransform<G>{products, second});
  });
}

/// Elements of `count` channels at x [count, G]: a full vector in shuffled order, fewer in natural order with
/// zeros after them.
template <int G>
HWY_INLINE void load_channels(const float* x, std::int64_t count, V* v) {
  const F32 d;
  if (count >= vector_lanes) [[likely]]
    load_shuffled<G>(d, x, v);
  else
    load_some_elements<G>(d, x, count, v);
}

template <int G>
HWY_INLINE void store_channels(const V* v, std::int64_t count, float* y) {
  const F32 d;
  if (count >= vector_lanes) [[likely]]
    store_shuffled<G>(d, v, y);
  else
    store_some_elements<G>(d, v, count, y);
}

/// Which channel stands in each lane of a vector that holds `count` of them.
template <int G>
std::array<std::int32_t, vector_lanes> channel_of_lane(std::int64_t count) {
  return count < vector_lanes ? shuffled_channels<1, vector_lanes>() : shuffled_channels<G, vector_lanes>();
}

/// Planes of `rows` ≤ height rows of x, `stride` floats apart, as [height][lanes] for every vector of
/// channels, at distance `next`, and every plane, at distance `plane`: zeros beyond C and beyond `rows`.
template <class In>
void pack_rows(const In in, std::int64_t channels, const float* x, std::int64_t stride, std::int64_t rows,
               std::int64_t height, float* a, std::int64_t plane, std::int64_t next) {
  constexpr int G = In::order;
  V v[G];
  for (std::int64_t i = 0; i < rows; ++i, x += stride, a += vector_lanes) {
    float* to = a;
    for (std::int64_t c = 0; c < channels; c += vector_lanes, to += next) {
      load_channels<G>(x + c * G, channels - c, v);
      in.split(v, to, plane);
    }
  }
  for (int t = 0; t < G; ++t) v[t] = hn::Zero(F32());
  for (std::int64_t i = rows; i < height; ++i, a += vector_lanes)
    for (std::int64_t c = 0; c * vector_lanes < channels; ++c) in.split(v, a + c * next, plane);
}

// Cache lines of later weights that a tile asks for with every vector of channels, so that eight tiles fetch
// as many weights as they use.
constexpr int lines_ahead = vector_lanes * panel / 128;
constexpr int line_floats = 16;

/// out [Rows, Vectors·lanes] (+)= a · b for one plane: a [⌈K/lanes⌉][tile_rows][lanes], b [K][panel]; what is
/// at `ahead`, if given, moves to the second-level cache.
template <int Rows, int Vectors>
HWY_INLINE void multiply_tile(std::int64_t count, const float* a, const float* b, float* out, bool add,
                              const float* ahead) {
  const F32 d;
  V left[Rows], right[Rows];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) left[i] = right[i] = hn::Zero(d);
  const auto step = [&](std::int64_t j) HWY_ATTR {
    const V b0 = hn::Load(d, b), b1 = hn::Load(d, b + (Vectors - 1) * vector_lanes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const V ai = hn::Set(d, a[i * vector_lanes + j]);
      left[i] = hn::MulAdd(ai, b0, left[i]);
      if constexpr (Vectors == 2) right[i] = hn::MulAdd(ai, b1, right[i]);
    }
    b += panel;
  };
  for (; count >= vector_lanes; count -= vector_lanes, a += tile_rows * vector_lanes) {
    if (ahead) {
#pragma GCC unroll 4
      for (int i = 0; i < lines_ahead; ++i, ahead += line_floats) __builtin_prefetch(ahead, 0, 2);
    }
#pragma GCC unroll 4
    for (int j = 0; j < vector_lanes; ++j) step(j);
  }
  for (int j = 0; j < count; ++j) step(j);
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    float* row = out + i * Vectors * vector_lanes;
    hn::Store(add ? hn::Add(left[i], hn::Load(d, row)) : left[i], d, row);
    if constexpr (Vectors == 2) {
      row += vector_lanes;
      hn::Store(add ? hn::Add(right[i], hn::Load(d, row)) : right[i], d, row);
    }
  }
}

/// All five planes of Rows rows in registers, for one vector of output channels: finish(row, planes), with
/// plane `even` before the last one. a as from pack_rows, planes at distance a_plane, vectors of channels at
/// a_next.
template <int Rows, class Finish>
HWY_INLINE void multiply_planes(std::int64_t count, const float* a, std::int64_t a_plane, std::int64_t a_next,
                                const float* b, int even, const Finish& finish) {
  constexpr int P = 5;
  const F32 d;
  const std::int64_t b_plane = count * panel;
  V sums[Rows][P];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) sums[i][p] = hn::Zero(d);
  const float *a3 = a + even * a_plane, *a4 = a + (7 - even) * a_plane;
  const float *b3 = b + even * b_plane, *b4 = b + (7 - even) * b_plane;
  const auto step = [&](const float* from, const float* weights, int p) HWY_ATTR {
    const V w = hn::Load(d, weights);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) sums[i][p] = hn::MulAdd(hn::Set(d, from[i * vector_lanes]), w, sums[i][p]);
  };
  const std::int64_t skip = a_next - vector_lanes;
  for (std::int64_t k = 0; k < count; k += vector_lanes, a += skip, a3 += skip, a4 += skip)
    for (const float* end = b + HWY_MIN(count - k, vector_lanes) * panel; b != end;
         b += panel, b3 += panel, b4 += panel, ++a, ++a3, ++a4) {
      step(a, b, 0);
      step(a + a_plane, b + b_plane, 1);
      step(a + 2 * a_plane, b + 2 * b_plane, 2);
      step(a3, b3, 3);
      step(a4, b4, 4);
    }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) finish(i, sums[i]);
}

/// multiply_tile for a number of rows and columns known at run time.
HWY_INLINE void multiply_some(std::int64_t rows, std::int64_t columns, std::int64_t count, const float* a,
                              const float* b, float* out, bool add, const float* ahead) {
  if (columns > vector_lanes) {
    if (2 * rows > tile_rows)
      multiply_tile<tile_rows, 2>(count, a, b, out, add, ahead);
    else
      multiply_tile<tile_rows / 2, 2>(count, a, b, out, add, ahead);
  } else {
    if (2 * rows > tile_rows)
      multiply_tile<tile_rows, 1>(count, a, b, out, add, ahead);
    else
      multiply_tile<tile_rows / 2, 1>(count, a, b, out, add, ahead);
  }
}

/// Where channels [c, c + lanes) of row d stand in the sums of a plane [⌈C⌉/panel][⌈D⌉][panel]: a tile of
/// them lies in one piece. What is left of C beyond whole panels is [⌈D⌉][lanes].
HWY_INLINE std::int64_t sum_offset(std::int64_t d, std::int64_t c, std::int64_t padded_c,
                                   std::int64_t padded_d) {
  const std::int64_t first = c / panel * panel, width = HWY_MIN(panel, padded_c - first);
  return first * padded_d + d * width + c - first;
}

/// sums [Rows, Vectors·lanes] += Σ_n g[n]ᵀ f[n] over `rows` rows: f
/// [⌈C/lanes⌉][f_height][lanes], g in tiles of g_height rows at distance g_tile, each
/// [⌈D/lanes⌉][g_height][lanes].
template <int Rows, int Vectors>
HWY_INLINE void reduce_tile(std::int64_t rows, const float* f, std::int64_t f_height, const float* g,
                            std::int64_t g_height, std::int64_t g_tile, float* sums, std::int64_t stride) {
  const F32 d;
  const float* other = f + (Vectors - 1) * f_height * vector_lanes;
  // Large sums wait in the third-level cache.
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Vectors; ++j) hwy::Prefetch(sums + i * stride + j * vector_lanes);
  V left[Rows], right[Rows];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) left[i] = right[i] = hn::Zero(d);
  for (; rows > 0; rows -= g_height, g += g_tile) {
    const float* gn = g;
    for (std::int64_t n = HWY_MIN(rows, g_height); n > 0;
         --n, gn += vector_lanes, f += vector_lanes, other += vector_lanes) {
      const V f0 = hn::Load(d, f), f1 = hn::Load(d, other);
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const V gi = hn::Set(d, gn[i]);
        left[i] = hn::MulAdd(gi, f0, left[i]);
        if constexpr (Vectors == 2) right[i] = hn::MulAdd(gi, f1, right[i]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    float* row = sums + i * stride;
    hn::Store(hn::Add(left[i], hn::Load(d, row)), d, row);
    if constexpr (Vectors == 2) {
      row += vector_lanes;
      hn::Store(hn::Add(right[i], hn::Load(d, row)), d, row);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif
