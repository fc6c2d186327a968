#pragma once

// Products of tiles in shared memory for attention. A block is 16 x 16 threads; thread (x, y) owns rows
// y·R … of what it sums and, of their columns, either x, x + 16, … or groups of neighbours.

#include "kernels/cuda/attention_launch.h"
#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {

constexpr int attention_block = 256, edge = 16;

GYRE_DEVICE int thread_x() { return static_cast<int>(threadIdx.x) % edge; }
GYRE_DEVICE int thread_y() { return static_cast<int>(threadIdx.x) / edge; }

/// Tiles of queries by keys for heads of up to 16·Columns channels, each thread with Queries x Keys scores.
template <class T, int Queries, int Keys, int Columns>
struct Tiles {
  using C = Wide<T>;
  static constexpr int query_share = Queries, key_share = Keys;
  static constexpr int queries = edge * Queries, keys = edge * Keys, width = edge * Columns;
  /// Distances of rows in shared memory: packs stay aligned, and columns spread over the banks.
  static constexpr int row = width + pack_size<C>;
  static constexpr int score_row = keys + pack_size<C>, transposed_row = queries + pack_size<C>;

  /// Column of element `w` of a thread's share of a row.
  GYRE_DEVICE static int column(int w) {
    constexpr int group = Columns < pack_size<C> ? Columns : pack_size<C>;
    return w / group * (edge * group) + thread_x() * group + w % group;
  }

  /// Rows [0, count) of `from`, `stride` apart, in `Rows` rows of the tile; zeros beyond them and the width.
  template <int Rows>
  GYRE_DEVICE static void load_rows(const T* from, std::int64_t stride, std::int64_t count, int head_width,
                                    bool packs, C* tile) {
    if (packs) {
      constexpr int size = pack_size<T>, packs_of_row = width / size;
      for (int i = static_cast<int>(threadIdx.x); i < Rows * packs_of_row; i += attention_block) {
        const int r = i / packs_of_row, c = i % packs_of_row * size;
        C values[size] = {};
        if (r < count && c < head_width) load(from + r * stride + c, values);
        store(values, tile + r * row + c);
      }
    } else {
      for (int i = static_cast<int>(threadIdx.x); i < Rows * width; i += attention_block) {
        const int r = i / width, c = i % width;
        tile[r * row + c] = r < count && c < head_width ? prim::widen(from[r * stride + c]) : C(0);
      }
    }
  }

  /// out[i][j] = row y·Queries + i of a · row x + 16 j of b.
  GYRE_DEVICE static void multiply_rows(const C* a, const C* b, C (&out)[Queries][Keys]) {
    constexpr int size = pack_size<C>;
    GYRE_UNROLL
    for (int i = 0; i < Queries; ++i) {
      GYRE_UNROLL
      for (int j = 0; j < Keys; ++j) out[i][j] = 0;
    }
    a += thread_y() * Queries * row;
    b += thread_x() * row;
    for (int e = 0; e < width; e += size) {
      C left[Queries][size], right[Keys][size];
      GYRE_UNROLL
      for (int i = 0; i < Queries; ++i) load(a + i * row + e, left[i]);
      GYRE_UNROLL
      for (int j = 0; j < Keys; ++j) load(b + j * edge * row + e, right[j]);
      GYRE_UNROLL
      for (int k = 0; k < size; ++k) {
        GYRE_UNROLL
        for (int i = 0; i < Queries; ++i) {
          GYRE_UNROLL
          for (int j = 0; j < Keys; ++j) out[i][j] += left[i][k] * right[j][k];
        }
      }
    }
  }

  /// out[i][w] += Σ_k a[y·Rows + i][k] · b[k][column(w)] over `Count` rows of b.
  template <int Rows, int Count>
  GYRE_DEVICE static void add_product(const C* a, int a_row, const C* b, C (&out)[Rows][Columns]) {
    constexpr int size = pack_size<C>, group = Columns < size ? Columns : size;
    a += thread_y() * Rows * a_row;
    for (int k = 0; k < Count; k += size) {
      C left[Rows][size];
      GYRE_UNROLL
      for (int i = 0; i < Rows; ++i) load(a + i * a_row + k, left[i]);
      GYRE_UNROLL
      for (int l = 0; l < size; ++l) {
        C right[Columns];
        GYRE_UNROLL
        for (int w = 0; w < Columns; w += group) {
          C values[group];
          load_run<true>(b + (k + l) * row + column(w), values);
          GYRE_UNROLL
          for (int v = 0; v < group; ++v) right[w + v] = values[v];
        }
        GYRE_UNROLL
        for (int i = 0; i < Rows; ++i) {
          GYRE_UNROLL
          for (int w = 0; w < Columns; ++w) out[i][w] += left[i][l] * right[w];
        }
      }
    }
  }

  /// Rows y·Rows + i below `count` of `out` times factors[i], `stride` apart.
  template <int Rows>
  GYRE_DEVICE static void store_rows(const C (&out)[Rows][Columns], const C (&factors)[Rows], T* to,
                                     std::int64_t stride, std::int64_t count, int head_width) {
    GYRE_UNROLL
    for (int i = 0; i < Rows; ++i) {
      const int r = thread_y() * Rows + i;
      if (r >= count) continue;
      GYRE_UNROLL
      for (int w = 0; w < Columns; ++w)
        if (column(w) < head_width) to[r * stride + column(w)] = prim::from_float<T>(out[i][w] * factors[i]);
    }
  }
};

/// One head of one image.
template <class T>
struct Head {
  std::int64_t stride, y_stride;  // between tokens
  const T *q, *k, *v;
  const Wide<T>*bias, *mask;
  Wide<T> scale;
  std::int64_t y;          // offset of its first element in y
  std::int64_t statistic;  // and in [images, heads, length]

  GYRE_DEVICE Head(const AttentionInput<T, Wide<T>>& in, std::int64_t image, std::int64_t head)
      : stride(3 * in.heads * in.width),
        y_stride(in.heads * in.width),
        q(in.qkv + image * in.length * stride + head * in.width),
        k(q + y_stride),
        v(k + y_stride),
        bias(in.bias == nullptr ? nullptr : in.bias + head * in.length * in.length),
        mask(in.mask == nullptr ? nullptr : in.mask + image % in.windows * in.length * in.length),
        scale(Wide<T>(1) / sqrt_of(static_cast<Wide<T>>(in.width))),
        y(image * in.length * y_stride + head * in.width),
        statistic((image * in.heads + head) * in.length) {}

  /// The score of a query and a key of the sequence from their product.
  GYRE_DEVICE Wide<T> score(Wide<T> product, std::int64_t at) const {
    Wide<T> result = product * scale;
    if (bias != nullptr) result += bias[at];
    if (mask != nullptr) result += mask[at];
    return result;
  }
};

/// Calls f(columns) with the constant that fits heads of `width` channels.
template <class T, class F>
void with_columns(std::int64_t width, F f) {
  if (width <= 16) return f(std::integral_constant<int, 1>());
  if (width <= 32) return f(std::integral_constant<int, 2>());
  if (width <= 64) return f(std::integral_constant<int, 4>());
  if (width <= 128) return f(std::integral_constant<int, 8>());
  if constexpr (max_head_width(std::is_same_v<T, double>) > 128) f(std::integral_constant<int, 16>());
}

/// Rows of heads can be read in packs.
template <class T>
bool heads_take_packs(const AttentionInput<T, Wide<T>>& input, const void* other = nullptr) {
  return rows_take_packs<T>(input.width, input.qkv, static_cast<const T*>(other));
}

}  // namespace gyre::kernels::cuda
