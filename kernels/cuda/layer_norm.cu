#include "kernels/cuda/layer_norm_launch.h"

#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {
namespace {

/// Column → channel; groups have orders of two's powers, for which a shift serves.
struct Channels {
  int repeat, shift;  // shift < 0: divide
  explicit Channels(int repeat_count) : repeat(repeat_count), shift(-1) {
    for (int s = 0; s < 31; ++s)
      if (1 << s == repeat) shift = s;
  }
  GYRE_DEVICE int of(int column) const { return shift >= 0 ? column >> shift : column / repeat; }
};

template <class T, class H, int count>
GYRE_DEVICE void load_either(const Either<const T, const H>& from, std::int64_t at,
                             Wide<T> (&values)[count]) {
  if constexpr (!std::is_same_v<T, H>) {
    if (from.wide == nullptr) return load(from.narrow + at, values);
  }
  load(from.wide + at, values);
}

template <class T, class H, int count>
GYRE_DEVICE void store_either(const Wide<T> (&values)[count], const Either<T, H>& to, std::int64_t at) {
  if constexpr (!std::is_same_v<T, H>) {
    if (to.wide == nullptr) return store(values, to.narrow + at);
  }
  store(values, to.wide + at);
}

/// Gains or biases of the columns from `column` on.
template <class C, int count>
GYRE_DEVICE void load_channels(const C* from, Channels channels, int column, C (&values)[count]) {
  if constexpr (count > 1) {
    if (channels.repeat == 1) return load(from + column, values);
    if (channels.repeat % count == 0) {
      const C value = from[channels.of(column)];
      GYRE_UNROLL
      for (int k = 0; k < count; ++k) values[k] = value;
      return;
    }
  }
  GYRE_UNROLL
  for (int k = 0; k < count; ++k) values[k] = from[channels.of(column + k)];
}

/// Every thread reads its columns once, and again from shared memory if a row fits in (`staged`).
template <class T, class H, int width, bool WholeBlock>
GYRE_KERNEL(team_block)
forward_kernel(LayerNormForward<T, H, Wide<T>> call, Channels channels, bool staged) {
  using C = Wide<T>;
  using Row = Team<WholeBlock>;
  GYRE_SHARED(C, shared);
  const std::int64_t row = Row::row();
  if (row >= call.rows) return;
  const int n = static_cast<int>(call.n), first = Row::rank() * width, step = Row::size() * width;
  const std::int64_t start = row * n;
  const bool adds = call.sum != nullptr;
  const T* const from = (adds ? call.sum : call.x) + start;
  C* const kept = shared + team_scratch + (WholeBlock ? 0 : prim::warp() * n);
  const C count = static_cast<C>(n);
  C sum = 0;
  for (int i = first; i < n; i += step) {
    C v[width];
    load(call.x + start + i, v);
    if (adds) {
      C r[width];
      load_either<T, H>(call.r, start + i, r);
      GYRE_UNROLL
      for (int k = 0; k < width; ++k) v[k] = prim::widen(prim::from_float<T>(v[k] + r[k]));
      store(v, call.sum + start + i);
    }
    if (staged) store(v, kept + i);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) sum += v[k];
  }
  sum = Row::sum(sum, shared);
  const C center = sum / count;
  // The second pass also measures how far `center` was rounded.
  C residue = 0, squares = 0;
  for (int i = first; i < n; i += step) {
    C v[width];
    if (staged)
      load(kept + i, v);
    else
      load(from + i, v);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) {
      v[k] -= center;
      residue += v[k];
      squares += v[k] * v[k];
    }
  }
  residue = Row::sum(residue, shared);
  squares = Row::sum(squares, shared);
  const C shift = residue / count, variance = squares / count - shift * shift;
  const C scale = C(1) / sqrt_of((variance > C(0) ? variance : C(0)) + call.eps);
  if (Row::rank() == 0) {
    call.mean[row] = center + shift;
    call.rstd[row] = scale;
  }
  for (int i = first; i < n; i += step) {
    C v[width], gain[width], bias[width];
    if (staged)
      load(kept + i, v);
    else
      load(from + i, v);
    load_channels(call.gain, channels, i, gain);
    load_channels(call.bias, channels, i, bias);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) v[k] = ((v[k] - center) - shift) * scale * gain[k] + bias[k];
    store_either<T, H>(v, call.y, start + i);
  }
}

/// Adds v to sums[0 …].
template <class C, int width>
GYRE_DEVICE void add_to(const C (&v)[width], C* sums) {
  C total[width];
  load(sums, total);
  GYRE_UNROLL
  for (int k = 0; k < width; ++k) total[k] += v[k];
  store(total, sums);
}

/// dx, and per block the sums over its rows of grad·z and of grad: parts [blocks, 2, n] in the workspace.
/// Every column belongs to one thread of a team, which alone touches its sums.
template <class T, class H, int width, bool WholeBlock>
GYRE_KERNEL(team_block, 2)
backward_kernel(LayerNormBackward<T, H, Wide<T>> call, Channels channels, bool sums_in_shared) {
  using C = Wide<T>;
  using Row = Team<WholeBlock>;
  GYRE_SHARED(C, shared);
  const int n = static_cast<int>(call.n);
  const int teams = WholeBlock ? 1 : prim::warps(), team = WholeBlock ? 0 : prim::warp();
  const int first = Row::rank() * width, step = Row::size() * width;
  C* const part = call.workspace + static_cast<std::int64_t>(blockIdx.x) * 2 * n;
  C* const gain_sums = sums_in_shared ? shared + team_scratch + team * 2 * n : part;
  C* const bias_sums = gain_sums + n;
  for (int i = first; i < n; i += step) {
    C zeros[width];
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) zeros[k] = 0;
    store(zeros, gain_sums + i);
    store(zeros, bias_sums + i);
  }
  const C count = static_cast<C>(n);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * teams;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * teams + team; row < call.rows;
       row += stride) {
    const std::int64_t start = row * n;
    const C center = call.mean[row], scale = call.rstd[row];
    C sum = 0, dot = 0;
    for (int i = first; i < n; i += step) {
      C v[width], g[width], gain[width];
      load(call.x + start + i, v);
      load_either<T, H>(call.grad, start + i, g);
      load_channels(call.gain, channels, i, gain);
      GYRE_UNROLL
      for (int k = 0; k < width; ++k) {
        const C scaled = g[k] * gain[k];
        sum += scaled;
        dot += scaled * (v[k] - center);
      }
    }
    sum = Row::sum(sum, shared);
    dot = Row::sum(dot, shared);
    // dx = rstd (g - Σg/n - z Σgz/n) with z = (x - mean) rstd.
    const C shift = sum / count, slope = dot * scale / count;
    for (int i = first; i < n; i += step) {
      C v[width], g[width], gain[width], products[width];
      load(call.x + start + i, v);
      load_either<T, H>(call.grad, start + i, g);
      load_channels(call.gain, channels, i, gain);
      GYRE_UNROLL
      for (int k = 0; k < width; ++k) {
        const C z = (v[k] - center) * scale;
        products[k] = g[k] * z;
        v[k] = scale * (g[k] * gain[k] - shift - z * slope);
      }
      add_to(products, gain_sums + i);
      add_to(g, bias_sums + i);
      if (call.outer != nullptr) {
        C outer[width];
        load(call.outer + start + i, outer);
        GYRE_UNROLL
        for (int k = 0; k < width; ++k) v[k] += outer[k];
      }
      store(v, call.dx + start + i);
      if constexpr (!std::is_same_v<T, H>) {
        if (call.dr != nullptr) store(v, call.dr + start + i);
      }
    }
  }
  if (!sums_in_shared) return;
  prim::sync();
  for (int i = static_cast<int>(threadIdx.x); i < 2 * n; i += team_block) {
    C total = 0;
    for (int t = 0; t < teams; ++t) total += shared[team_scratch + t * 2 * n + i];
    part[i] = total;
  }
}

constexpr int tile = 32;  // channels of a block

/// dgain (blockIdx.y = 0) and dbias (1) from parts [count, 2, n].
template <class C>
GYRE_KERNEL(team_block)
collect_kernel(const C* parts, int count, int repeat, int n, C* dgain, C* dbias) {
  GYRE_SHARED(C, sums);
  const int x = static_cast<int>(threadIdx.x) % tile, y = static_cast<int>(threadIdx.x) / tile;
  constexpr int slices = team_block / tile;
  const int channel = static_cast<int>(blockIdx.x) * tile + x, channels = n / repeat;
  C sum = 0;
  if (channel < channels)
    for (int p = y; p < count; p += slices) {
      const C* const from = parts + (static_cast<std::int64_t>(p) * 2 + blockIdx.y) * n + channel * repeat;
      for (int k = 0; k < repeat; ++k) sum += from[k];
    }
  sums[y * tile + x] = sum;
  prim::sync();
  if (y == 0 && channel < channels) {
    for (int s = 1; s < slices; ++s) sum += sums[s * tile + x];
    (blockIdx.y == 0 ? dgain : dbias)[channel] = sum;
  }
}

constexpr std::int64_t most_parts = 512, rows_of_team = 16;
constexpr std::int64_t cheap_shared = 48 * 1024;  // bytes; more would cost blocks per multiprocessor

std::int64_t part_count(std::int64_t rows, std::int64_t teams) {
  const std::int64_t parts = prim::blocks(rows, rows_of_team * teams);
  return parts < 1 ? 1 : parts > most_parts ? most_parts : parts;
}

template <class T, class H, int width, bool WholeBlock>
void forward(const LayerNormForward<T, H, Wide<T>>& call, void* stream) {
  constexpr std::int64_t size = sizeof(Wide<T>), teams = WholeBlock ? 1 : team_block / prim::warp_size;
  const std::int64_t bytes = (team_scratch + teams * call.n) * size;
  const bool staged = bytes <= cheap_shared;
  GYRE_LAUNCH((forward_kernel<T, H, width, WholeBlock>), prim::Grid{team_blocks(WholeBlock, call.rows)},
              team_block, staged ? bytes : team_scratch * size, stream, call, Channels(call.repeat), staged);
}

template <class T, class H, int width>
void backward(const LayerNormBackward<T, H, Wide<T>>& call, void* stream) {
  using C = Wide<T>;
  constexpr std::int64_t size = sizeof(C), warps = team_block / prim::warp_size;
  const auto shared_for = [&](std::int64_t teams) { return (team_scratch + teams * 2 * call.n) * size; };
  const bool whole_block = call.n > warp_row || shared_for(warps) > cheap_shared;
  const bool in_shared = !whole_block || shared_for(1) <= cheap_shared;
  const std::int64_t parts = part_count(call.rows, whole_block ? 1 : warps);
  const Channels channels(call.repeat);
  if (whole_block)
    GYRE_LAUNCH((backward_kernel<T, H, width, true>), prim::Grid{parts}, team_block,
                in_shared ? shared_for(1) : team_scratch * size, stream, call, channels, in_shared);
  else
    GYRE_LAUNCH((backward_kernel<T, H, width, false>), prim::Grid{parts}, team_block, shared_for(warps),
                stream, call, channels, true);
  GYRE_LAUNCH(collect_kernel<C>, (prim::Grid{prim::blocks(call.n / call.repeat, tile), 2}), team_block,
              team_block * size, stream, call.workspace, static_cast<int>(parts), call.repeat,
              static_cast<int>(call.n), call.dgain, call.dbias);
}

}  // namespace

std::int64_t layer_norm_workspace(std::int64_t rows, std::int64_t n) { return part_count(rows, 1) * 2 * n; }

template <class T, class H, class S>
void launch_layer_norm_forward(const LayerNormForward<T, H, S>& call, void* stream) {
  const bool packs = rows_take_packs<H>(call.n, call.x, call.r.wide, call.r.narrow, call.gain, call.bias,
                                        call.sum, call.y.wide, call.y.narrow);
  with_team<H>(packs, call.n, [&](auto width, auto whole) { forward<T, H, width, whole>(call, stream); });
}

template <class T, class H, class S>
void launch_layer_norm_backward(const LayerNormBackward<T, H, S>& call, void* stream) {
  if (rows_take_packs<H>(call.n, call.x, call.gain, call.grad.wide, call.grad.narrow, call.outer, call.dx,
                         call.dr, call.workspace))
    backward<T, H, pack_size<H>>(call, stream);
  else
    backward<T, H, 1>(call, stream);
}

#define GYRE_INSTANTIATE(T, H)                                                            \
  template void launch_layer_norm_forward(const LayerNormForward<T, H, Wide<T>>&, void*); \
  template void launch_layer_norm_backward(const LayerNormBackward<T, H, Wide<T>>&, void*);
GYRE_INSTANTIATE(float, float)
GYRE_INSTANTIATE(double, double)
GYRE_INSTANTIATE(prim::half_t, prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t, prim::bf16_t)
GYRE_INSTANTIATE(float, prim::half_t)
GYRE_INSTANTIATE(float, prim::bf16_t)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
