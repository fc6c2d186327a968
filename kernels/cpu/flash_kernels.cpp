#include "kernels/cpu/flash_kernels.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "core/parallel.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/flash_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/elements-inl.h"

#ifndef GYRE_FLASH_SCRATCH
#define GYRE_FLASH_SCRATCH
namespace gyre::kernels::cpu {
namespace {

struct FreeAligned {
  void operator()(float* p) const { ::operator delete[](p, std::align_val_t(64)); }
};

/// Memory of the calling thread, kept between calls; contents are undefined.
class Scratch {
 public:
  float* get(std::int64_t count) {
    if (count > size_) {
      data_.reset(static_cast<float*>(
          ::operator new[](static_cast<std::size_t>(count) * sizeof(float), std::align_val_t(64))));
      size_ = count;
    }
    return data_.get();
  }

 private:
  std::unique_ptr<float[], FreeAligned> data_;
  std::int64_t size_ = 0;
};

Scratch& scratch() {
  thread_local Scratch memory;
  return memory;
}

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace
}  // namespace gyre::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using V = hn::Vec<F32>;
constexpr int lanes = static_cast<int>(hn::MaxLanes(F32()));
constexpr int panel = 2 * lanes;                             // output channels of a tile
constexpr int tile_rows = lanes >= 16 ? 12 : 6;              // 24 of 32, or 12 of 16 registers accumulate
constexpr int reduce_rows = lanes >= 8 ? lanes / 2 : lanes;  // output channels of a tile of dW
static_assert(lanes % reduce_rows == 0);
constexpr std::int64_t k_block = 256;  // channels per accumulator chain: bounds rounding errors

/// Any form: planes p = Σ_t m(p, t) v(t) on the way in, v(t) = Σ_p m(t, p) plane(p) on the way out.
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
      for (int t = 0; t < G; ++t) v[t] = hn::MulAdd(hn::Set(d, m[t * products + p]), a, v[t]);
    }
  }
};

/// The five-product form of quarter turns by additions alone. Planes: sum, alternating sum, e + o, and e = v0
/// - v2 with a sign in slot `even`, o = v3 - v1 in the other of 3 and 4; the way out is the transpose.
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
};

/// out [Rows, Vectors·lanes of panel] (+)= a · b for one plane: a [⌈K/lanes⌉][tile_rows][lanes], b
/// [K][panel].
template <int Rows, int Vectors>
HWY_INLINE void multiply_tile(std::int64_t count, const float* a, const float* b, float* out, bool add) {
  const F32 d;
  V left[Rows], right[Rows];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) left[i] = right[i] = hn::Zero(d);
  for (std::int64_t k = 0; k < count; k += lanes, a += tile_rows * lanes) {
    const std::int64_t some = HWY_MIN(count - k, static_cast<std::int64_t>(lanes));
    for (std::int64_t j = 0; j < some; ++j, b += panel) {
      const V b0 = hn::Load(d, b), b1 = hn::Load(d, b + (Vectors - 1) * lanes);
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const V ai = hn::Set(d, a[i * lanes + j]);
        left[i] = hn::MulAdd(ai, b0, left[i]);
        if constexpr (Vectors == 2) right[i] = hn::MulAdd(ai, b1, right[i]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    float* row = out + i * panel;
    hn::Store(add ? hn::Add(left[i], hn::Load(d, row)) : left[i], d, row);
    if constexpr (Vectors == 2) {
      row += lanes;
      hn::Store(add ? hn::Add(right[i], hn::Load(d, row)) : right[i], d, row);
    }
  }
}

/// multiply_tile for a number of rows and columns known at run time.
HWY_INLINE void multiply_some(int rows, std::int64_t columns, std::int64_t count, const float* a,
                              const float* b, float* out, bool add) {
  if (columns > lanes) {
    if (2 * rows > tile_rows)
      multiply_tile<tile_rows, 2>(count, a, b, out, add);
    else
      multiply_tile<tile_rows / 2, 2>(count, a, b, out, add);
  } else {
    if (2 * rows > tile_rows)
      multiply_tile<tile_rows, 1>(count, a, b, out, add);
    else
      multiply_tile<tile_rows / 2, 1>(count, a, b, out, add);
  }
}

/// Planes of `rows` ≤ tile_rows rows of x as [P][⌈C/lanes⌉][tile_rows][lanes], zeros beyond C.
template <class In>
void pack_tile(const In& in, std::int64_t channels, const float* x, int rows, float* a) {
  const F32 d;
  constexpr int G = In::order;
  const std::int64_t plane = round_up(channels, lanes) * tile_rows;
  for (int i = 0; i < rows; ++i, x += channels * G) {
    for (std::int64_t c = 0; c < channels; c += lanes) {
      V v[G];
      load_some_elements<G>(d, x + c * G, channels - c, v);
      in.split(v, a + c * tile_rows + i * lanes, plane);
    }
  }
}

/// y of one tile from its plane products [P] at distance `plane`: `rows` × `columns` ≤ panel channels.
template <class Out>
void finish_tile(const Out& out, const FlashProduct& product, const float* products, std::int64_t plane,
                 int rows, std::int64_t first_column, std::int64_t columns, float* y) {
  const F32 d;
  constexpr int G = Out::order;
  for (int i = 0; i < rows; ++i, products += panel, y += product.channels_out * G) {
    for (std::int64_t c = 0; c < columns; c += lanes) {
      const std::int64_t column = first_column + c, left = product.channels_out - column;
      V v[G];
      out.merge(products + c, plane, product.bias ? load_some(d, product.bias + column, left) : hn::Zero(d),
                v);
      store_some_elements<G>(d, v, left, y + column * G);
    }
  }
}

template <class In, class Out>
void multiply_rows(const In& in, const Out& merge, const FlashProduct& product, std::int64_t first,
                   std::int64_t last) {
  constexpr int G = In::order;
  const std::int64_t c_count = product.channels_in, d_count = product.channels_out;
  const int products = product.products;
  const std::int64_t a_plane = round_up(c_count, lanes) * tile_rows, a_tile = products * a_plane;
  // Packed rows stay in the second-level cache while all weight panels pass by.
  const std::int64_t tiles_at_once = std::clamp<std::int64_t>(131072 / a_tile, 1, 8);
  const std::int64_t out_tile = tile_rows * panel, out_plane = tiles_at_once * out_tile;
  float* a = scratch().get(tiles_at_once * a_tile + products * out_plane);
  float* out = a + tiles_at_once * a_tile;

  for (std::int64_t row = first; row < last; row += tiles_at_once * tile_rows) {
    const std::int64_t rows = std::min(tiles_at_once * tile_rows, last - row);
    const std::int64_t tiles = (rows + tile_rows - 1) / tile_rows;
    const auto rows_of = [&](std::int64_t tile) {
      return static_cast<int>(std::min<std::int64_t>(tile_rows, rows - tile * tile_rows));
    };
    for (std::int64_t tile = 0; tile < tiles; ++tile)
      pack_tile(in, c_count, product.x + (row + tile * tile_rows) * c_count * G, rows_of(tile),
                a + tile * a_tile);

    for (std::int64_t column = 0; column < d_count; column += panel) {
      const std::int64_t columns = std::min<std::int64_t>(panel, d_count - column);
      const float* weights = product.weights + column * products * c_count;
      for (int p = 0; p < products; ++p, weights += c_count * panel) {
        for (std::int64_t k = 0; k < c_count; k += k_block) {
          const std::int64_t count = std::min(k_block, c_count - k);
          for (std::int64_t tile = 0; tile < tiles; ++tile)
            multiply_some(rows_of(tile), columns, count, a + tile * a_tile + p * a_plane + k * tile_rows,
                          weights + k * panel, out + p * out_plane + tile * out_tile, k > 0);
        }
      }
      for (std::int64_t tile = 0; tile < tiles; ++tile)
        finish_tile(merge, product, out + tile * out_tile, out_plane, rows_of(tile), column, columns,
                    product.y + (row + tile * tile_rows) * d_count * G);
    }
  }
}

/// sums [reduce_rows, panel] += Σ_n g[n]ᵀ f[n] for g [N][lanes] at `g`, f [N][panel].
HWY_INLINE void reduce_tile(std::int64_t count, const float* g, const float* f, float* sums,
                            std::int64_t stride) {
  const F32 d;
  V left[reduce_rows], right[reduce_rows];
#pragma GCC unroll 16
  for (int i = 0; i < reduce_rows; ++i) left[i] = right[i] = hn::Zero(d);
  for (std::int64_t n = 0; n < count; ++n, g += lanes, f += panel) {
    const V f0 = hn::Load(d, f), f1 = hn::Load(d, f + lanes);
#pragma GCC unroll 16
    for (int i = 0; i < reduce_rows; ++i) {
      const V gi = hn::Set(d, g[i]);
      left[i] = hn::MulAdd(gi, f0, left[i]);
      right[i] = hn::MulAdd(gi, f1, right[i]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < reduce_rows; ++i) {
    float* row = sums + i * stride;
    hn::Store(hn::Add(left[i], hn::Load(d, row)), d, row);
    hn::Store(hn::Add(right[i], hn::Load(d, row + lanes)), d, row + lanes);
  }
}

/// Planes of `rows` rows as [P][⌈C/width⌉][rows][width], zeros beyond C. `sums` [C] += Σ_n Σ_t x or null.
template <class In>
void pack_reduction(const In& in, std::int64_t channels, int width, std::int64_t rows, const float* x,
                    float* planes, float* sums) {
  const F32 d;
  constexpr int G = In::order;
  const std::int64_t padded = round_up(channels, width), plane = padded * rows;
  for (std::int64_t n = 0; n < rows; ++n, x += channels * G) {
    for (std::int64_t c = 0; c < padded; c += lanes) {
      V v[G];
      if (c < channels)
        load_some_elements<G>(d, x + c * G, channels - c, v);
      else
        for (int t = 0; t < G; ++t) v[t] = hn::Zero(d);
      in.split(v, planes + c / width * width * rows + n * width + c % width, plane);
      if (sums && c < channels) {
        V sum = v[0];
        for (int t = 1; t < G; ++t) sum = hn::Add(sum, v[t]);
        store_some(d, hn::Add(load_some(d, sums + c, channels - c), sum), channels - c, sums + c);
      }
    }
  }
}

template <class In, class Out>
void reduce_all_rows(const In& in, const Out& out, const FlashReduction& r, std::int64_t first,
                     std::int64_t last, float* sums, float* bias) {
  constexpr int G = In::order;
  const std::int64_t c_padded = round_up(r.channels_in, panel), d_padded = round_up(r.channels_out, lanes);
  // One plane of both sides stays in the second-level cache.
  const std::int64_t block = std::clamp<std::int64_t>(196608 / (c_padded + d_padded), 32, 256);
  const std::int64_t f_plane = c_padded * block, g_plane = d_padded * block, sum_plane = d_padded * c_padded;
  float* f = scratch().get(r.products * (f_plane + g_plane + sum_plane) + d_padded);
  float* g = f + r.products * f_plane;
  float* padded = g + r.products * g_plane;
  float* bias_sum = padded + r.products * sum_plane;
  std::memset(padded, 0, static_cast<std::size_t>(r.products * sum_plane + d_padded) * sizeof(float));

  for (std::int64_t row = first; row < last; row += block) {
    const std::int64_t rows = std::min(block, last - row);
    pack_reduction(in, r.channels_in, panel, rows, r.x + row * r.channels_in * G, f, nullptr);
    pack_reduction(out, r.channels_out, lanes, rows, r.dy + row * r.channels_out * G, g,
                   bias ? bias_sum : nullptr);
    for (int p = 0; p < r.products; ++p)
      for (std::int64_t c = 0; c < c_padded; c += panel)
        for (std::int64_t d = 0; d < r.channels_out; d += reduce_rows)
          reduce_tile(rows, g + p * d_padded * rows + d / lanes * lanes * rows + d % lanes,
                      f + (p * c_padded + c) * rows, padded + p * sum_plane + d * c_padded + c, c_padded);
  }
  for (int p = 0; p < r.products; ++p)
    for (std::int64_t d = 0; d < r.channels_out; ++d) {
      float* to = sums + (p * r.channels_out + d) * r.channels_in;
      const float* from = padded + p * sum_plane + d * c_padded;
      for (std::int64_t c = 0; c < r.channels_in; ++c) to[c] += from[c];
    }
  if (bias)
    for (std::int64_t d = 0; d < r.channels_out; ++d) bias[d] += bias_sum[d];
}

/// The additions of quarter turns if the matrix in its [5, 4] orientation is theirs.
bool is_quarter(int order, int products, const float* m, bool transposed, QuarterTransform& quarter) {
  if (order != 4 || products != 5) return false;
  const auto at = [&](int p, int t) { return transposed ? m[t * 5 + p] : m[p * 4 + t]; };
  const auto row_is = [&](int p, float a, float b, float c, float d) {
    return at(p, 0) == a && at(p, 1) == b && at(p, 2) == c && at(p, 3) == d;
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

template <int G>
void multiply_dense(const FlashProduct& p, std::int64_t first, std::int64_t last) {
  multiply_rows(DenseTransform<G>{p.products, p.input}, DenseTransform<G>{p.products, p.output}, p, first,
                last);
}

void multiply(const FlashProduct& product, std::int64_t first, std::int64_t last) {
  QuarterTransform in, out;
  if (is_quarter(product.order, product.products, product.input, false, in) &&
      is_quarter(product.order, product.products, product.output, true, out))
    return multiply_rows(in, out, product, first, last);
  switch (product.order) {
    case 1: return multiply_dense<1>(product, first, last);
    case 2: return multiply_dense<2>(product, first, last);
    case 4: return multiply_dense<4>(product, first, last);
    default: return multiply_dense<8>(product, first, last);
  }
}

template <int G>
void reduce_dense(const FlashReduction& r, std::int64_t first, std::int64_t last, float* sums, float* bias) {
  reduce_all_rows(DenseTransform<G>{r.products, r.input}, DenseTransform<G>{r.products, r.output}, r, first,
                  last, sums, bias);
}

void reduce(const FlashReduction& r, std::int64_t first, std::int64_t last, float* sums, float* bias) {
  QuarterTransform in, out;
  if (is_quarter(r.order, r.products, r.input, false, in) &&
      is_quarter(r.order, r.products, r.output, false, out))
    return reduce_all_rows(in, out, r, first, last, sums, bias);
  switch (r.order) {
    case 1: return reduce_dense<1>(r, first, last, sums, bias);
    case 2: return reduce_dense<2>(r, first, last, sums, bias);
    case 4: return reduce_dense<4>(r, first, last, sums, bias);
    default: return reduce_dense<8>(r, first, last, sums, bias);
  }
}

std::int64_t panel_width() { return panel; }

const char* target_name() {
  switch (HWY_TARGET) {
    case HWY_AVX3: return "avx512";
    case HWY_AVX2: return "avx2";
    case HWY_NEON: return "neon";
    default: return "portable";
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gyre::kernels::cpu {
HWY_EXPORT(multiply);
HWY_EXPORT(reduce);
HWY_EXPORT(panel_width);
HWY_EXPORT(target_name);

std::int64_t flash_panel() { return GYRE_CHOSEN(panel_width)(); }
const char* flash_target() { return GYRE_CHOSEN(target_name)(); }

std::int64_t packed_flash_size(int products, std::int64_t channels_in, std::int64_t channels_out) {
  return products * channels_in * round_up(channels_out, flash_panel());
}

void pack_flash_weights(int products, std::int64_t channels_in, std::int64_t channels_out,
                        const float* planes, std::int64_t plane, std::int64_t c_stride, std::int64_t d_stride,
                        float* packed) {
  const std::int64_t width = flash_panel();
  const std::int64_t blocks = (channels_out + width - 1) / width * products;
  parallel_for(0, blocks, std::max<std::int64_t>(1, 16384 / (channels_in * width)),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t block = first; block < last; ++block) {
                   const std::int64_t column = block / products * width;
                   const std::int64_t columns = std::min(width, channels_out - column);
                   const float* from = planes + block % products * plane + column * d_stride;
                   float* to = packed + block * channels_in * width;
                   for (std::int64_t c = 0; c < channels_in; ++c, to += width) {
                     for (std::int64_t d = 0; d < columns; ++d) to[d] = from[c * c_stride + d * d_stride];
                     for (std::int64_t d = columns; d < width; ++d) to[d] = 0;
                   }
                 }
               });
}

void flash_multiply(const FlashProduct& product, std::int64_t first, std::int64_t last) {
  GYRE_CHOSEN(multiply)(product, first, last);
}

void flash_reduce(const FlashReduction& reduction, std::int64_t first, std::int64_t last, float* sums,
                  float* bias) {
  GYRE_CHOSEN(reduce)(reduction, first, last, sums, bias);
}

}  // namespace gyre::kernels::cpu
#endif
