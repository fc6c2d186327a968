#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/reduce_launch.h"

namespace gyre::kernels::cuda {
namespace {

/// Four tiles of head channels and two of scores fit into 99 KiB of shared memory.
template <class T, int Columns>
using BackwardTiles = Tiles<T, (Columns <= (sizeof(Wide<T>) == 4 ? 8 : 4) ? 2 : 1),
                            (Columns <= (sizeof(Wide<T>) == 4 ? 8 : 4) ? 2 : 1), Columns>;

template <class T, int Columns>
constexpr std::int64_t shared_bytes() {
  using Own = BackwardTiles<T, Columns>;
  constexpr int scores = Own::queries * Own::score_row, transposed = Own::keys * Own::transposed_row;
  return static_cast<std::int64_t>(sizeof(Wide<T>)) *
         (2 * (Own::queries + Own::keys) * Own::row + 2 * (scores > transposed ? scores : transposed));
}

/// dots [images, heads, length] = grad · y over the channels of a head: what the softmax takes off the
/// gradient of every probability of a row. One warp for each.
template <class T>
GYRE_KERNEL(team_block)
dots_kernel(AttentionInput<T, Wide<T>> in, const T* y, const T* grad, Wide<T>* dots) {
  const std::int64_t at = Team<false>::row();  // [images, length, heads]
  if (at >= in.images * in.length * in.heads) return;
  Wide<T> sum = 0;
  for (std::int64_t i = prim::lane(); i < in.width; i += prim::warp_size)
    sum += prim::widen(y[at * in.width + i]) * prim::widen(grad[at * in.width + i]);
  sum = prim::warp_sum(sum);
  const std::int64_t head = at % in.heads, token = at / in.heads % in.length,
                     image = at / in.heads / in.length;
  if (prim::lane() == 0) dots[(image * in.heads + head) * in.length + token] = sum;
}

/// What the three kernels share: tiles of queries and of their gradients, of keys and of values.
template <class T, int Columns>
struct Scene {
  using C = Wide<T>;
  using Own = BackwardTiles<T, Columns>;
  static constexpr int rows = Own::query_share, keys = Own::key_share;

  const AttentionInput<T, Wide<T>>& in;
  const AttentionBackward<T, C>& back;
  const C* dots;
  bool packs;
  C *query_tile, *grad_tile, *key_tile, *value_tile, *scores, *other_scores;

  GYRE_DEVICE Scene(const AttentionInput<T, Wide<T>>& input, const AttentionBackward<T, C>& backward,
                    const C* row_dots, bool take_packs, C* shared)
      : in(input),
        back(backward),
        dots(row_dots),
        packs(take_packs),
        query_tile(shared),
        grad_tile(query_tile + Own::queries * Own::row),
        key_tile(grad_tile + Own::queries * Own::row),
        value_tile(key_tile + Own::keys * Own::row),
        scores(value_tile + Own::keys * Own::row),
        other_scores(scores + Own::keys * Own::transposed_row) {}

  GYRE_DEVICE void load_queries(const Head<T>& head, std::int64_t query) const {
    const int width = static_cast<int>(in.width);
    Own::template load_rows<Own::queries>(head.q + query * head.stride, head.stride, in.length - query, width,
                                          packs, query_tile);
    Own::template load_rows<Own::queries>(back.grad + head.y + query * head.y_stride, head.y_stride,
                                          in.length - query, width, packs, grad_tile);
  }
  GYRE_DEVICE void load_keys(const Head<T>& head, std::int64_t key) const {
    const int width = static_cast<int>(in.width);
    Own::template load_rows<Own::keys>(head.k + key * head.stride, head.stride, in.length - key, width, packs,
                                       key_tile);
    Own::template load_rows<Own::keys>(head.v + key * head.stride, head.stride, in.length - key, width, packs,
                                       value_tile);
  }
  /// Probabilities and gradients of the scores of the thread's queries and keys; zeros beyond the sequence.
  GYRE_DEVICE void differentiate(const Head<T>& head, std::int64_t query, std::int64_t key,
                                 C (&p)[rows][keys], C (&ds)[rows][keys]) const {
    Own::multiply_rows(query_tile, key_tile, p);
    Own::multiply_rows(grad_tile, value_tile, ds);
    GYRE_UNROLL
    for (int i = 0; i < rows; ++i) {
      const std::int64_t q = query + thread_y() * rows + i;
      const bool inside = q < in.length;
      const C logarithm = inside ? back.logarithms[head.statistic + q] : C(0);
      const C dot = inside ? dots[head.statistic + q] : C(0);
      GYRE_UNROLL
      for (int j = 0; j < keys; ++j) {
        const std::int64_t k = key + thread_x() + j * edge;
        p[i][j] = inside && k < in.length ? exp_of(head.score(p[i][j], q * in.length + k) - logarithm) : C(0);
        ds[i][j] = p[i][j] * (ds[i][j] - dot);
      }
    }
  }
};

/// Gradients of a tile of keys and values of one head.
template <class T, int Columns>
GYRE_KERNEL(attention_block, 1)
key_kernel(AttentionInput<T, Wide<T>> in, AttentionBackward<T, Wide<T>> back, const Wide<T>* dots,
           std::int64_t key_tiles, bool packs) {
  using C = Wide<T>;
  using Own = BackwardTiles<T, Columns>;
  constexpr int rows = Own::query_share, keys = Own::key_share;
  GYRE_SHARED(C, shared);
  const Scene<T, Columns> scene(in, back, dots, packs, shared);
  const std::int64_t head_index = static_cast<std::int64_t>(blockIdx.x) / key_tiles;
  const std::int64_t key = static_cast<std::int64_t>(blockIdx.x) % key_tiles * Own::keys;
  const std::int64_t image = head_index / in.heads;
  const Head<T> head(in, image, head_index % in.heads);
  C dk[keys][Columns] = {}, dv[keys][Columns] = {};
  scene.load_keys(head, key);
  for (std::int64_t query = 0; query < in.length; query += Own::queries) {
    scene.load_queries(head, query);
    prim::sync();
    C p[rows][keys], ds[rows][keys];
    scene.differentiate(head, query, key, p, ds);
    GYRE_UNROLL
    for (int i = 0; i < rows; ++i) {
      GYRE_UNROLL
      for (int j = 0; j < keys; ++j) {
        const int at = (thread_x() + j * edge) * Own::transposed_row + thread_y() * rows + i;
        scene.scores[at] = p[i][j];
        scene.other_scores[at] = ds[i][j];
      }
    }
    prim::sync();
    Own::template add_product<keys, Own::queries>(scene.scores, Own::transposed_row, scene.grad_tile, dv);
    Own::template add_product<keys, Own::queries>(scene.other_scores, Own::transposed_row, scene.query_tile,
                                                  dk);
    prim::sync();
  }
  C scales[keys], ones[keys];
  GYRE_UNROLL
  for (int j = 0; j < keys; ++j) {
    scales[j] = head.scale;
    ones[j] = 1;
  }
  T* const to = back.result + (head.k - in.qkv) + key * head.stride;
  const int width = static_cast<int>(in.width);
  Own::store_rows(dk, scales, to, head.stride, in.length - key, width);
  Own::store_rows(dv, ones, to + head.y_stride, head.stride, in.length - key, width);
}

/// Gradient of a tile of queries of one head.
template <class T, int Columns>
GYRE_KERNEL(attention_block, 1)
query_kernel(AttentionInput<T, Wide<T>> in, AttentionBackward<T, Wide<T>> back, const Wide<T>* dots,
             std::int64_t query_tiles, bool packs) {
  using C = Wide<T>;
  using Own = BackwardTiles<T, Columns>;
  constexpr int rows = Own::query_share, keys = Own::key_share;
  GYRE_SHARED(C, shared);
  const Scene<T, Columns> scene(in, back, dots, packs, shared);
  const std::int64_t head_index = static_cast<std::int64_t>(blockIdx.x) / query_tiles;
  const std::int64_t query = static_cast<std::int64_t>(blockIdx.x) % query_tiles * Own::queries;
  const Head<T> head(in, head_index / in.heads, head_index % in.heads);
  C dq[rows][Columns] = {};
  scene.load_queries(head, query);
  for (std::int64_t key = 0; key < in.length; key += Own::keys) {
    scene.load_keys(head, key);
    prim::sync();
    C p[rows][keys], ds[rows][keys];
    scene.differentiate(head, query, key, p, ds);
    GYRE_UNROLL
    for (int i = 0; i < rows; ++i) {
      GYRE_UNROLL
      for (int j = 0; j < keys; ++j)
        scene.scores[(thread_y() * rows + i) * Own::score_row + thread_x() + j * edge] = ds[i][j];
    }
    prim::sync();
    Own::template add_product<rows, Own::keys>(scene.scores, Own::score_row, scene.key_tile, dq);
    prim::sync();
  }
  C scales[rows];
  GYRE_UNROLL
  for (int i = 0; i < rows; ++i) scales[i] = head.scale;
  Own::store_rows(dq, scales, back.result + (head.q - in.qkv) + query * head.stride, head.stride,
                  in.length - query, static_cast<int>(in.width));
}

/// Gradient of a tile of the bias, summed over one part of the images: parts [parts, heads, length, length].
template <class T, int Columns>
GYRE_KERNEL(attention_block, 1)
bias_kernel(AttentionInput<T, Wide<T>> in, AttentionBackward<T, Wide<T>> back, const Wide<T>* dots,
            std::int64_t tiles, std::int64_t part_count, bool packs, Wide<T>* parts) {
  using C = Wide<T>;
  using Own = BackwardTiles<T, Columns>;
  constexpr int rows = Own::query_share, keys = Own::key_share;
  GYRE_SHARED(C, shared);
  const Scene<T, Columns> scene(in, back, dots, packs, shared);
  std::int64_t index = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t key = index % tiles * Own::keys;
  index /= tiles;
  const std::int64_t query = index % tiles * Own::queries;
  index /= tiles;
  const std::int64_t head_index = index % in.heads, part = index / in.heads;
  C sums[rows][keys] = {};
  for (std::int64_t image = part; image < in.images; image += part_count) {
    const Head<T> head(in, image, head_index);
    scene.load_queries(head, query);
    scene.load_keys(head, key);
    prim::sync();
    C p[rows][keys], ds[rows][keys];
    scene.differentiate(head, query, key, p, ds);
    GYRE_UNROLL
    for (int i = 0; i < rows; ++i) {
      GYRE_UNROLL
      for (int j = 0; j < keys; ++j) sums[i][j] += ds[i][j];
    }
    prim::sync();
  }
  C* const to = parts + (part * in.heads + head_index) * in.length * in.length;
  GYRE_UNROLL
  for (int i = 0; i < rows; ++i) {
    const std::int64_t q = query + thread_y() * rows + i;
    GYRE_UNROLL
    for (int j = 0; j < keys; ++j) {
      const std::int64_t k = key + thread_x() + j * edge;
      if (q < in.length && k < in.length) to[q * in.length + k] = sums[i][j];
    }
  }
}

/// Parts of the images whose bias gradients are summed apart: enough blocks to fill a device.
std::int64_t bias_parts(std::int64_t images, std::int64_t length, std::int64_t heads) {
  constexpr std::int64_t wanted_blocks = 1024, least_images = 4;
  const std::int64_t tiles = prim::blocks(length, 2 * edge), blocks = tiles * tiles * heads;
  const std::int64_t parts = prim::blocks(wanted_blocks, blocks), most = prim::blocks(images, least_images);
  return parts < most ? parts : most;
}

}  // namespace

std::int64_t attention_workspace(std::int64_t images, std::int64_t length, std::int64_t heads,
                                 bool bias_gradient) {
  const std::int64_t dots = images * heads * length, area = heads * length * length;
  if (!bias_gradient) return dots;
  const std::int64_t parts = bias_parts(images, length, heads);
  return dots + parts * area + sum_workspace(1, parts, area);
}

template <class T, class S>
void launch_attention_backward(const AttentionInput<T, S>& input, const AttentionBackward<T, S>& backward,
                               S* workspace, void* stream) {
  const std::int64_t all_heads = input.images * input.heads, tokens = all_heads * input.length;
  S* const dots = workspace;
  GYRE_LAUNCH(dots_kernel<T>, prim::Grid{team_blocks(false, tokens)}, team_block, 0, stream, input,
              backward.y, backward.grad, dots);
  const bool packs = heads_take_packs(input, backward.grad);
  with_columns<T>(input.width, [&](auto columns) {
    using Own = BackwardTiles<T, columns>;
    static_assert(Own::queries == Own::keys);
    const std::int64_t tiles = prim::blocks(input.length, Own::keys);
    constexpr std::int64_t shared = shared_bytes<T, columns>();
    GYRE_LAUNCH((key_kernel<T, columns>), prim::Grid{tiles * all_heads}, attention_block, shared, stream,
                input, backward, dots, tiles, packs);
    GYRE_LAUNCH((query_kernel<T, columns>), prim::Grid{tiles * all_heads}, attention_block, shared, stream,
                input, backward, dots, tiles, packs);
    if (backward.bias_gradient == nullptr) return;
    const std::int64_t parts = bias_parts(input.images, input.length, input.heads);
    const std::int64_t area = input.heads * input.length * input.length;
    S* const part_sums = dots + tokens;
    GYRE_LAUNCH((bias_kernel<T, columns>), prim::Grid{tiles * tiles * input.heads * parts}, attention_block,
                shared, stream, input, backward, dots, tiles, parts, packs, part_sums);
    launch_sum(part_sums, backward.bias_gradient, 1, parts, area, part_sums + parts * area, stream);
  });
}

#define GYRE_INSTANTIATE(T)                                                  \
  template void launch_attention_backward(const AttentionInput<T, Wide<T>>&, \
                                          const AttentionBackward<T, Wide<T>>&, Wide<T>*, void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
GYRE_INSTANTIATE(prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
