#include "kernels/cpu/flash_kernels.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/flash_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/flash_tiles-inl.h"
#include "kernels/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {

constexpr std::int64_t cache_floats = 131072;  // half of a common second-level cache
constexpr int reduce_rows =
    vector_lanes >= 8 ? vector_lanes / 2 : vector_lanes;  // output channels of a wide tile of dW
static_assert(vector_lanes % reduce_rows == 0);
static_assert(whole_panels(1) % panel == 0);

/// How many tiles of rows and how many output channels are worked on at once, and over how many input
/// channels in one go.
struct Blocking {
  std::int64_t tiles, columns, depth;

  Blocking(std::int64_t products, std::int64_t channels_in, std::int64_t channels_out) {
    const std::int64_t padded_in = round_up(std::max<std::int64_t>(1, channels_in), vector_lanes);
    // Weights that leave room in the cache are met again soon, others want more rows at each visit.
    constexpr std::int64_t few_tiles = 48 / tile_rows, more_tiles = 96 / tile_rows;
    const std::int64_t wanted = products * padded_in * channels_out < cache_floats ? few_tiles : more_tiles,
                       fitting = cache_floats / (products * padded_in * tile_rows);
    if (fitting >= (channels_in > k_block ? few_tiles : wanted)) {
      // All planes of these rows stay in the cache while the weight panels pass by.
      tiles = std::min(wanted, fitting);
      columns = panel;
      depth = padded_in;
    } else {
      // So many channels of one plane of the rows stay there while all their weights pass by.
      depth = std::min<std::int64_t>(padded_in, 1024);
      tiles = std::clamp<std::int64_t>(cache_floats / (depth * tile_rows), 4, 192 / tile_rows);
      columns = 4 * panel;
    }
    columns = std::min(columns, round_up(channels_out, panel));
  }
};

/// The bias as [⌈D⌉] in the order of the lanes.
template <int G>
void load_bias(const FlashProduct& product, float* bias) {
  for (std::int64_t c = 0; c < product.channels_out; c += vector_lanes) {
    const auto channel = channel_of_lane<G>(product.channels_out - c);
    for (int i = 0; i < vector_lanes; ++i) {
      const std::int64_t at = c + channel[static_cast<std::size_t>(i)];
      bias[c + i] = product.bias && at < product.channels_out ? product.bias[at] : 0;
    }
  }
}

// Input channels whose products last long enough to fetch rows of y meanwhile.
constexpr std::int64_t long_products = 192;

// Quarter turns to one vector of output channels: the planes of these rows need not leave the registers.
constexpr int narrow_rows = 6;
template <class Out>
constexpr bool may_be_narrow = vector_lanes >= 16 && std::is_same_v<Out, QuarterTransform>;

inline bool is_narrow(const FlashProduct& product) {
  return product.channels_out <= vector_lanes && product.channels_in <= k_block && !product.gelu;
}

/// `rows` ≤ narrow_rows rows of y from `row` on; a, a_plane and a_next as in multiply_planes.
HWY_INLINE void multiply_narrow(const QuarterTransform out, const FlashProduct& product, V bias,
                                std::int64_t row, std::int64_t rows, const float* a, std::int64_t a_plane,
                                std::int64_t a_next) {
  constexpr int G = QuarterTransform::order;
  const std::int64_t d_count = product.channels_out, y_stride = product.y_stride;
  float* y = product.y + row * y_stride;
  multiply_planes<narrow_rows>(product.channels_in, a, a_plane, a_next, product.weights, out.even,
                               [&](std::int64_t i, const V* p) HWY_ATTR {
                                 if (i >= rows) return;
                                 V v[G];
                                 out.merge(p, bias, v);
                                 store_channels<G>(v, d_count, y + i * y_stride);
                               });
}

/// Multiplies packed rows with all weights and finishes the rows of y.
template <class Out>
class Multiplier {
 public:
  static constexpr int G = Out::order;

  Multiplier(const Out& out, const FlashProduct& product)
      : out_(out),
        product_(product),
        block_(product.products, product.channels_in, product.channels_out),
        results_plane_(block_.tiles * tile_rows * block_.columns),
        merge_at_once_(block_.columns == panel && !product.gelu) {}

  std::int64_t rows() const { return block_.tiles * tile_rows; }
  std::int64_t scratch_floats() const {
    return product_.products * results_plane_ + round_up(product_.channels_out, vector_lanes);
  }
  void use(float* scratch) {
    results_ = scratch;
    bias_ = scratch + product_.products * results_plane_;
    load_bias<G>(product_, bias_);
  }

  /// Rows [first, first + rows) of y from their planes a, one
  /// [tiles][⌈C/lanes⌉][tile_rows][lanes] at distance `plane` each.
  void operator()(std::int64_t first, std::int64_t rows, const float* a, std::int64_t plane) const {
    const std::int64_t d_count = product_.channels_out;
    if constexpr (may_be_narrow<Out>)
      if (is_narrow(product_)) return multiply_narrow_tiles(first, rows, a, plane);
    for (std::int64_t column = 0; column < d_count; column += block_.columns) {
      const std::int64_t end = std::min(d_count, column + block_.columns);
      for (int p = 0; p < product_.products; ++p)
        for (std::int64_t k = 0; k < product_.channels_in; k += block_.depth)
          for (std::int64_t at = column; at < end; at += panel)
            multiply_panel(first, rows, p, k, column, at, a + p * plane);
      if (!merge_at_once_) finish_tiles(first, rows, column, end);
    }
  }

 private:
  float* result(std::int64_t column, std::int64_t at, std::int64_t tile) const {
    return results_ + ((at - column) / panel * block_.tiles + tile) * tile_rows * panel;
  }

  void multiply_narrow_tiles(std::int64_t first, std::int64_t rows, const float* a,
                             std::int64_t plane) const {
    const std::int64_t a_tile = round_up(product_.channels_in, vector_lanes) * tile_rows;
    const V bias = hn::Load(F32(), bias_);
    static_assert(tile_rows % narrow_rows == 0);
    for (std::int64_t row = 0; row < rows; row += narrow_rows)
      multiply_narrow(out_, product_, bias, first + row, std::min<std::int64_t>(narrow_rows, rows - row),
                      a + row / tile_rows * a_tile + row % tile_rows * vector_lanes, plane,
                      tile_rows * vector_lanes);
  }

  /// Asks for the share of plane p in `rows` rows of y from `row` on, output channels [at, at + panel): they
  /// are written after the last plane.
  void fetch_rows(std::int64_t row, std::int64_t rows, int p, std::int64_t at) const {
    const std::int64_t floats = std::min<std::int64_t>(panel, product_.channels_out - at) * G;
    const float* y = product_.y + (row + p) * product_.y_stride + at * G;
    for (; p < rows; p += product_.products, y += product_.products * product_.y_stride)
      for (std::int64_t i = 0; i < floats; i += line_floats) __builtin_prefetch(y + i, 1, 2);
  }

  /// Output channels [at, at + panel) of plane p over input channels [first, first + depth), for rows of y
  /// from `start` on.
  void multiply_panel(std::int64_t start, std::int64_t rows, int p, std::int64_t first, std::int64_t column,
                      std::int64_t at, const float* a) const {
    const std::int64_t c_count = product_.channels_in, a_tile = round_up(c_count, vector_lanes) * tile_rows;
    const std::int64_t last = std::min(c_count, first + block_.depth),
                       columns = std::min<std::int64_t>(panel, product_.channels_out - at);
    const float* weights = product_.weights + (at * product_.products + p * panel) * c_count;
    const std::int64_t weights_size = round_up(product_.channels_out, panel) * product_.products * c_count;
    const bool far = weights_size > cache_floats;  // others stay in the cache, and asking costs time
    const bool fetch = c_count >= long_products;
    const float* const weights_end = product_.weights + weights_size;
    const float* next_panel =
        weights + ((block_.columns > panel ? product_.products : 1) * c_count + first) * panel;
    for (std::int64_t k = first; k < last; k += k_block) {
      const std::int64_t count = std::min(k_block, last - k);
      const float* ahead = k + k_block < last ? weights + (k + k_block) * panel : next_panel;
      const std::int64_t fetched = count / vector_lanes * lines_ahead * line_floats;
      for (std::int64_t row = 0, tile = 0; row < rows; row += tile_rows, ++tile) {
        if (fetch && k == 0) fetch_rows(start + row, std::min<std::int64_t>(tile_rows, rows - row), p, at);
        // Rows to come begin with the first panel; addresses beyond the last would cost a walk of page
        // tables.
        if (ahead + fetched > weights_end) ahead = product_.weights;
        multiply_some(std::min<std::int64_t>(tile_rows, rows - row), columns, count,
                      a + tile * a_tile + k * tile_rows, weights + k * panel,
                      result(column, at, tile) + p * results_plane_, k > 0, far ? ahead : nullptr);
        ahead += fetched;
        if (merge_at_once_ && p + 1 == product_.products && k + count == c_count)
          store_tile(result(column, at, tile), start + row, std::min<std::int64_t>(tile_rows, rows - row), at,
                     columns);
      }
    }
  }

  /// Output channels [column, end) of `rows` rows of y from `first` on, apart from the code of the products:
  /// GELU has many constants.
  HWY_NOINLINE void finish_tiles(std::int64_t first, std::int64_t rows, std::int64_t column,
                                 std::int64_t end) const {
    for (std::int64_t row = 0, tile = 0; row < rows; row += tile_rows, ++tile)
      for (std::int64_t at = column; at < end; at += panel) {
        const std::int64_t height = std::min<std::int64_t>(tile_rows, rows - row),
                           columns = std::min<std::int64_t>(panel, end - at);
        if (product_.gelu)
          activate_tile(result(column, at, tile), first + row, height, at, columns);
        else
          store_tile(result(column, at, tile), first + row, height, at, columns);
      }
  }
  void store_tile(const float* products, std::int64_t row, std::int64_t rows, std::int64_t column,
                  std::int64_t columns) const {
    for_tile(products, row, rows, column, columns,
             [y = product_.y](const V* v, std::int64_t count, std::int64_t at)
                 HWY_ATTR { store_channels<G>(v, count, y + at); });
  }
  void activate_tile(const float* products, std::int64_t row, std::int64_t rows, std::int64_t column,
                     std::int64_t columns) const {
    for_tile(products, row, rows, column, columns,
             [this](V* v, std::int64_t count, std::int64_t at) HWY_ATTR {
               if (product_.sum) store_channels<G>(v, count, product_.sum + at);
               for (int t = 0; t < G; ++t) v[t] = hn::Mul(v[t], normal(F32(), v[t]).cdf);
               store_channels<G>(v, count, product_.y + at);
             });
  }
  /// finish(elements, channels left, offset in y) for the merged vectors of a tile.
  template <class F>
  HWY_INLINE void for_tile(const float* products, std::int64_t row, std::int64_t rows, std::int64_t column,
                           std::int64_t columns, const F& finish) const {
    const Out out = out_;  // kept in registers
    const std::int64_t stride = columns > vector_lanes ? panel : vector_lanes, plane = results_plane_;
    const std::int64_t left = product_.channels_out - column, y_stride = product_.y_stride;
    const float* bias = bias_ + column;
    std::int64_t at = row * y_stride + column * G;
    for (std::int64_t i = 0; i < rows; ++i, products += stride, at += y_stride)
      for (std::int64_t c = 0; c < columns; c += vector_lanes) {
        V v[G];
        out.merge(products + c, plane, hn::Load(F32(), bias + c), v);
        finish(v, left - c, at + c * G);
      }
  }

  Out out_;
  const FlashProduct& product_;
  Blocking block_;
  std::int64_t results_plane_;
  bool merge_at_once_;  // while the last plane of a tile is near; its stores overlap with products to come
  float* results_ = nullptr;
  float* bias_ = nullptr;
};

/// Packs rows in tiles for a Multiplier.
template <class In>
void pack_tiles(const In& in, std::int64_t channels, const float* x, std::int64_t rows, float* a,
                std::int64_t plane) {
  const std::int64_t stride = channels * In::order, padded = round_up(channels, vector_lanes);
  for (std::int64_t row = 0; row < rows; row += tile_rows)
    pack_rows(in, channels, x + row * stride, stride, std::min<std::int64_t>(tile_rows, rows - row),
              tile_rows, a + row * padded, plane, tile_rows * vector_lanes);
}

/// multiply_rows for a narrow product. A tile is packed before the products of the last one, so that the
/// processor works on both at once: products wait for loads, packing for shuffles and stores.
template <class In, class Out>
void multiply_narrow_rows(const In& in, const Out& out, const FlashProduct& product, std::int64_t first,
                          std::int64_t last) {
  constexpr std::int64_t plane = narrow_rows * vector_lanes, next = 5 * plane;
  const std::int64_t c_count = product.channels_in, stride = c_count * In::order;
  const std::int64_t tile = round_up(c_count, vector_lanes) / vector_lanes * next;
  const ThreadScratch<float> scratch(2 * tile + vector_lanes);
  float *a = scratch.data(), *other = a + tile, *bias = other + tile;
  load_bias<Out::order>(product, bias);
  const auto rows_at = [&](std::int64_t row) { return std::min<std::int64_t>(narrow_rows, last - row); };
  const auto pack = [&](std::int64_t row, float* to) {
    pack_rows(in, c_count, product.x + row * stride, stride, rows_at(row), narrow_rows, to, plane, next);
  };
  pack(first, a);
  for (std::int64_t row = first; row < last; row += narrow_rows) {
    if (row + narrow_rows < last) pack(row + narrow_rows, other);
    multiply_narrow(out, product, hn::Load(F32(), bias), row, rows_at(row), a, plane, next);
    std::swap(a, other);
  }
}

template <class In, class Out>
void multiply_rows(const In& in, const Out& out, const FlashProduct& product, std::int64_t first,
                   std::int64_t last) {
  if (first >= last) return;
  if constexpr (may_be_narrow<Out>)
    if (is_narrow(product)) return multiply_narrow_rows(in, out, product, first, last);
  Multiplier<Out> multiplier(out, product);
  const std::int64_t plane = multiplier.rows() * round_up(product.channels_in, vector_lanes);
  const ThreadScratch<float> scratch(product.products * plane + multiplier.scratch_floats());
  float* a = scratch.data();
  multiplier.use(a + product.products * plane);
  for (std::int64_t row = first; row < last; row += multiplier.rows()) {
    const std::int64_t rows = std::min(multiplier.rows(), last - row);
    pack_tiles(in, product.channels_in, product.x + row * product.channels_in * In::order, rows, a, plane);
    multiplier(row, rows, a, plane);
  }
}

/// sums[p] (sum_offset) += Σ_n g[n]ᵀ f[n] for every plane, both sides padded to whole vectors: f in one tile
/// of f_height rows, g in tiles of g_height.
inline void reduce_planes(int products, std::int64_t rows, const float* f, std::int64_t f_plane,
                          std::int64_t f_height, const float* g, std::int64_t g_plane, std::int64_t g_height,
                          std::int64_t padded_c, std::int64_t padded_d, float* sums) {
  const std::int64_t g_tile = padded_d * g_height, wide = padded_c / panel * panel;
  for (int p = 0; p < products; ++p, f += f_plane, g += g_plane, sums += padded_d * padded_c) {
    for (std::int64_t c = 0; c < wide; c += panel)
      for (std::int64_t d = 0; d < padded_d; d += reduce_rows)
        reduce_tile<reduce_rows, 2>(rows, f + c * f_height, f_height,
                                    g + d / vector_lanes * vector_lanes * g_height + d % vector_lanes,
                                    g_height, g_tile, sums + c * padded_d + d * panel, panel);
    if (wide < padded_c)
      for (std::int64_t d = 0; d < padded_d; d += vector_lanes)
        reduce_tile<vector_lanes, 1>(rows, f + wide * f_height, f_height, g + d * g_height, g_height, g_tile,
                                     sums + wide * padded_d + d * vector_lanes, vector_lanes);
  }
}

/// bias[⌈D⌉] += Σ_n g[n] of one plane in tiles. The rows are summed on their own first, so that rounding does
/// not grow with all rows before them.
inline void sum_rows(std::int64_t rows, const float* g, std::int64_t height, std::int64_t padded_d,
                     float* bias) {
  const F32 d;
  for (std::int64_t c = 0; c < padded_d; c += vector_lanes) {
    V sum = hn::Zero(d);
    const float* tile = g + c * height;
    for (std::int64_t left = rows; left > 0; left -= height, tile += padded_d * height) {
      const float* from = tile;
      for (std::int64_t n = std::min(left, height); n > 0; --n, from += vector_lanes)
        sum = hn::Add(sum, hn::Load(d, from));
    }
    hn::Store(hn::Add(hn::Load(d, bias + c), sum), d, bias + c);
  }
}

/// Rows from one vector of channels to the next: at multiples of 1024 bytes they would share few sets of the
/// first-level cache.
inline std::int64_t spaced(std::int64_t rows) { return round_up(rows + 8, 16) - 8; }

/// Adds the sums for dW, then those for db, over rows [first, last); with `dx` also those rows of dX, from
/// the same packed dy.
template <class In, class Out>
void reduce_all(const In& in, const Out& out, const FlashReduction& r, const FlashProduct* dx,
                std::int64_t first, std::int64_t last, float* sums) {
  const std::int64_t padded_c = round_up(r.channels_in, vector_lanes),
                     padded_d = round_up(r.channels_out, vector_lanes);
  float* bias = sums + r.products * padded_c * padded_d;
  const std::int64_t x_stride = r.channels_in * In::order;
  std::optional<Multiplier<In>> multiplier;
  if (dx) multiplier.emplace(in, *dx);
  // Alone, one plane of both sides stays in the second-level cache.
  const std::int64_t block =
      dx ? multiplier->rows()
         : std::clamp<std::int64_t>(2 * cache_floats / (padded_c + padded_d), tile_rows, 160);
  const std::int64_t f_height = spaced(std::min(block, last - first)), g_height = dx ? tile_rows : f_height;
  const std::int64_t f_plane = padded_c * f_height, g_plane = padded_d * (dx ? block : g_height);
  const ThreadScratch<float> scratch(r.products * (f_plane + g_plane) +
                                     (dx ? multiplier->scratch_floats() : 0));
  float* f = scratch.data();
  float* g = f + r.products * f_plane;
  if (dx) multiplier->use(g + r.products * g_plane);
  for (std::int64_t row = first; row < last; row += block) {
    const std::int64_t rows = std::min(block, last - row);
    const float* dy = r.dy + row * r.dy_stride;
    if (dx) {
      pack_tiles(out, r.channels_out, dy, rows, g, g_plane);
      (*multiplier)(row, rows, g, g_plane);
    } else {
      pack_rows(out, r.channels_out, dy, r.dy_stride, rows, rows, g, g_plane, g_height * vector_lanes);
    }
    sum_rows(rows, g + r.sum_plane * g_plane, g_height, padded_d, bias);
    pack_rows(in, r.channels_in, r.x + row * x_stride, x_stride, rows, rows, f, f_plane,
              f_height * vector_lanes);
    reduce_planes(r.products, rows, f, f_plane, f_height, g, g_plane, g_height, padded_c, padded_d, sums);
  }
}

void multiply(const FlashProduct& product, std::int64_t first, std::int64_t last) {
  with_transforms(product.order, product.products, product.split, product.merge,
                  [&](const auto& in, const auto& out) { multiply_rows(in, out, product, first, last); });
}

void reduce(const FlashReduction& r, const FlashProduct* dx, std::int64_t first, std::int64_t last,
            float* sums) {
  with_transforms(r.order, r.products, r.split_x, r.split_dy,
                  [&](const auto& in, const auto& out) { reduce_all(in, out, r, dx, first, last, sums); });
}

int target_lanes() { return vector_lanes; }

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
HWY_EXPORT(target_lanes);
HWY_EXPORT(target_name);

const char* flash_target() { return GYRE_CHOSEN(target_name)(); }
int flash_lanes() { return GYRE_CHOSEN(target_lanes)(); }

FlashProduct FlashProduct::part(std::int64_t first, std::int64_t count) const {
  FlashProduct own = *this;
  own.channels_out = count;
  own.weights += first * products * channels_in;
  if (own.bias) own.bias += first;
  own.y += first * order;
  if (own.sum) own.sum += first * order;
  return own;
}

void flash_multiply(const FlashProduct& product, std::int64_t first, std::int64_t last) {
  GYRE_CHOSEN(multiply)(product, first, last);
}

void flash_reduce(const FlashReduction& reduction, const FlashProduct* dx, std::int64_t first,
                  std::int64_t last, float* sums) {
  GYRE_CHOSEN(reduce)(reduction, dx, first, last, sums);
}

}  // namespace gyre::kernels::cpu
#endif
