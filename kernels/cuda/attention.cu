#include "kernels/cuda/attention_tiles.cuh"

namespace gyre::kernels::cuda {
namespace {

/// Large tiles serve more products per load; these fit into 99 KiB of shared memory.
template <class T, int Columns>
using ForwardTiles = Tiles<T,
                           (sizeof(Wide<T>) == 4 && Columns <= 8 ? 4
                            : Columns <= 8                       ? 2
                                                                 : 1),
                           (sizeof(Wide<T>) == 4 && Columns <= 4 ? 4
                            : Columns <= 8                       ? 2
                                                                 : 1),
                           Columns>;

/// The maximum or sum over the 16 threads that share a row.
template <class C, class Combine>
GYRE_DEVICE C combine_row(C value, Combine combine) {
  GYRE_UNROLL
  for (int mask = edge / 2; mask > 0; mask /= 2) {
    const C other = prim::shfl_xor(value, mask);
    value = combine(value, other);
  }
  return value;
}

/// A block computes a tile of queries of one head. What it keeps of a row while it goes over the keys: the
/// largest score, the sum of the exponentials relative to it, and their product with the values.
template <class T, int Columns>
GYRE_KERNEL(attention_block, 1)
forward_kernel(AttentionInput<T, Wide<T>> in, std::int64_t query_tiles, bool packs, T* y,
               Wide<T>* logarithms) {
  using C = Wide<T>;
  using Own = ForwardTiles<T, Columns>;
  constexpr int rows = Own::query_share, keys = Own::key_share;
  GYRE_SHARED(C, shared);
  C* const query_tile = shared;
  C* const key_tile = query_tile + Own::queries * Own::row;
  C* const scores = key_tile + Own::keys * Own::row;
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) % query_tiles;
  const std::int64_t head_index = static_cast<std::int64_t>(blockIdx.x) / query_tiles;
  const Head<T> head(in, head_index / in.heads, head_index % in.heads);
  const std::int64_t first = tile * Own::queries, query_count = in.length - first;
  const int width = static_cast<int>(in.width);

  C most[rows], sums[rows], out[rows][Columns] = {};
  GYRE_UNROLL
  for (int i = 0; i < rows; ++i) {
    most[i] = negative_infinity<C>();
    sums[i] = 0;
  }
  Own::template load_rows<Own::queries>(head.q + first * head.stride, head.stride, query_count, width, packs,
                                        query_tile);
  for (std::int64_t key = 0; key < in.length; key += Own::keys) {
    Own::template load_rows<Own::keys>(head.k + key * head.stride, head.stride, in.length - key, width, packs,
                                       key_tile);
    prim::sync();
    C p[rows][keys];
    Own::multiply_rows(query_tile, key_tile, p);
    GYRE_UNROLL
    for (int i = 0; i < rows; ++i) {
      const int r = thread_y() * rows + i;
      C largest = negative_infinity<C>();
      GYRE_UNROLL
      for (int j = 0; j < keys; ++j) {
        const std::int64_t k = key + thread_x() + j * edge;
        p[i][j] = k < in.length && r < query_count ? head.score(p[i][j], (first + r) * in.length + k)
                                                   : negative_infinity<C>();
        largest = prim::Max()(p[i][j], largest);
      }
      const C next = prim::Max()(combine_row(largest, prim::Max()), most[i]);
      // While every key is hidden, differences to any finite number are -∞.
      const C base = next == negative_infinity<C>() ? C(0) : next;
      const C shrink = exp_of(most[i] - base);
      C sum = 0;
      GYRE_UNROLL
      for (int j = 0; j < keys; ++j) {
        p[i][j] = exp_of(p[i][j] - base);
        sum += p[i][j];
        scores[r * Own::score_row + thread_x() + j * edge] = p[i][j];
      }
      sums[i] = sums[i] * shrink + combine_row(sum, prim::Sum());
      most[i] = next;
      GYRE_UNROLL
      for (int w = 0; w < Columns; ++w) out[i][w] *= shrink;
    }
    prim::sync();
    Own::template load_rows<Own::keys>(head.v + key * head.stride, head.stride, in.length - key, width, packs,
                                       key_tile);
    prim::sync();
    Own::template add_product<rows, Own::keys>(scores, Own::score_row, key_tile, out);
    prim::sync();
  }
  C factors[rows];
  GYRE_UNROLL
  for (int i = 0; i < rows; ++i) {
    factors[i] = C(1) / sums[i];
    const int r = thread_y() * rows + i;
    if (logarithms != nullptr && thread_x() == 0 && r < query_count)
      logarithms[head.statistic + first + r] = most[i] + log_of(sums[i]);
  }
  Own::store_rows(out, factors, y + head.y + first * head.y_stride, head.y_stride, query_count, width);
}

}  // namespace

template <class T, class S>
void launch_attention_forward(const AttentionInput<T, S>& input, T* y, S* logarithms, void* stream) {
  with_columns<T>(input.width, [&](auto columns) {
    using Own = ForwardTiles<T, columns>;
    const std::int64_t tiles = prim::blocks(input.length, Own::queries);
    constexpr std::int64_t shared =
        ((Own::queries + Own::keys) * Own::row + Own::queries * Own::score_row) * sizeof(S);
    GYRE_LAUNCH((forward_kernel<T, columns>), prim::Grid{tiles * input.heads * input.images}, attention_block,
                shared, stream, input, tiles, heads_take_packs(input), y, logarithms);
  });
}

#define GYRE_INSTANTIATE(T) \
  template void launch_attention_forward(const AttentionInput<T, Wide<T>>&, T*, Wide<T>*, void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
GYRE_INSTANTIATE(prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
