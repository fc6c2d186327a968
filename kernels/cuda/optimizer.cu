#include "kernels/cuda/device.cuh"
#include "kernels/cuda/optimizer_launch.h"

namespace gyre::kernels::cuda {
namespace {

constexpr int block = 256;
constexpr std::int64_t chunk = 4096;  // elements of a block
// Tables travel as kernel arguments: 4 KB for short lists, 32 KB at most.
constexpr int few_items = 80, most_items = 640;

template <class T, int capacity>
struct Table {
  struct Entry {
    UpdateItem<T> item;
    std::int64_t first_block;
  } entries[capacity];
  int count = 0;
  std::int64_t blocks = 0;

  void add(const UpdateItem<T>& item) {
    entries[count++] = {item, blocks};
    blocks += prim::blocks(item.count, chunk);
  }
};

GYRE_DEVICE bool takes_packs(const void* a, const void* b, const void* c, const void* d) {
  return ((reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
           reinterpret_cast<std::uintptr_t>(c) | reinterpret_cast<std::uintptr_t>(d)) %
          16) == 0;
}

/// So many neighbours.
template <int count>
struct Run {
  static constexpr int width = count;
};

/// The elements [begin, end) of an item that are this block's; empty items have none.
template <class T>
struct Share {
  UpdateItem<T> item;
  std::int64_t begin, end;

  template <int capacity>
  GYRE_DEVICE explicit Share(const Table<T, capacity>& table) {
    const auto own = static_cast<std::int64_t>(blockIdx.x);
    int low = 0, high = table.count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (table.entries[middle].first_block <= own ? low : high) = middle;
    }
    item = table.entries[low].item;
    begin = (own - table.entries[low].first_block) * chunk;
    end = begin + chunk < item.count ? begin + chunk : item.count;
  }

  /// Calls f(Run<width>(), i) for runs of elements that start at i: packs where all arrays allow it.
  template <class F>
  GYRE_DEVICE void for_each(F f) const {
    constexpr int width = pack_size<T>;
    std::int64_t done = begin;
    if (takes_packs(item.p, item.g, item.m, item.v)) {
      done = begin + (end - begin) / width * width;
      for (std::int64_t i = begin + static_cast<std::int64_t>(threadIdx.x) * width; i < done;
           i += block * width)
        f(Run<width>(), i);
    }
    for (std::int64_t i = done + threadIdx.x; i < end; i += block) f(Run<1>(), i);
  }
};

template <class T, int width, class Update>
GYRE_DEVICE void update_run(const UpdateItem<T>& item, const Update& update, std::int64_t at) {
  T p[width], g[width], m[width] = {}, v[width] = {};
  load(item.p + at, p);
  load(item.g + at, g);
  if (item.m != nullptr) load(item.m + at, m);
  if (item.v != nullptr) load(item.v + at, v);
  GYRE_UNROLL
  for (int k = 0; k < width; ++k) update(p[k], g[k], m[k], v[k]);
  store(p, item.p + at);
  if (item.m != nullptr) store(m, item.m + at);
  if (item.v != nullptr) store(v, item.v + at);
}

template <class T, int capacity, class Update>
GYRE_KERNEL(block)
update_kernel(Table<T, capacity> table, Update update) {
  const Share<T> share(table);
  share.for_each(
      [&](auto run, std::int64_t i) { update_run<T, decltype(run)::width>(share.item, update, i); });
}

template <class T>
struct AdamW {
  T decay, beta1, beta2, rest1, rest2, step_size, correction, eps, scale;
  explicit AdamW(const AdamWFactors& f)
      : decay(static_cast<T>(f.decay)),
        beta1(static_cast<T>(f.beta1)),
        beta2(static_cast<T>(f.beta2)),
        rest1(static_cast<T>(1 - f.beta1)),
        rest2(static_cast<T>(1 - f.beta2)),
        step_size(static_cast<T>(f.step_size)),
        correction(static_cast<T>(f.inverse_correction)),
        eps(static_cast<T>(f.eps)),
        scale(static_cast<T>(f.grad_scale)) {}
  GYRE_DEVICE void operator()(T& p, T g, T& m, T& v) const {
    const T grad = g * scale;
    m = rest1 * grad + beta1 * m;
    v = rest2 * grad * grad + beta2 * v;
    p = p * decay - step_size * m / (sqrt_of(v) * correction + eps);
  }
};

template <class T>
struct Sgd {
  T lr, momentum, decay, scale;
  bool nesterov;
  explicit Sgd(const SgdFactors& f)
      : lr(static_cast<T>(f.lr)),
        momentum(static_cast<T>(f.momentum)),
        decay(static_cast<T>(f.weight_decay)),
        scale(static_cast<T>(f.grad_scale)),
        nesterov(f.nesterov) {}
  GYRE_DEVICE void operator()(T& p, T g, T& m, T&) const {
    const T grad = g * scale + decay * p;
    m = momentum * m + grad;  // without a buffer m is 0, and momentum as well
    p -= lr * (nesterov ? grad + momentum * m : m);
  }
};

template <class T>
struct Lerp {
  T weight;
  GYRE_DEVICE void operator()(T& p, T g, T&, T&) const { p += weight * (g - p); }
};

/// One partial sum for each block.
template <class T, int capacity>
GYRE_KERNEL(block)
square_kernel(Table<T, capacity> table, double* parts) {
  GYRE_SHARED(double, scratch);
  const Share<T> share(table);
  double sum = 0;
  share.for_each([&](auto run, std::int64_t i) {
    constexpr int width = decltype(run)::width;
    T g[width];
    load(share.item.g + i, g);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) sum += static_cast<double>(g[k]) * static_cast<double>(g[k]);
  });
  sum = prim::block_sum(sum, scratch);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

/// One block adds up all parts.
GYRE_KERNEL(block) add_parts_kernel(const double* parts, std::int64_t count, double* result) {
  GYRE_SHARED(double, scratch);
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += block) sum += parts[i];
  sum = prim::block_sum(sum, scratch);
  if (threadIdx.x == 0) *result = sum;
}

/// Calls launch(table) for tables that hold all items.
template <class T, class F>
void for_tables(const UpdateItem<T>* items, std::int64_t count, F launch) {
  const auto fill = [&](auto& table, std::int64_t some) {
    for (; some > 0; --some) table.add(*items++);
    if (table.blocks > 0) launch(table);
  };
  for (; count > few_items; count -= most_items) {
    Table<T, most_items> table;
    fill(table, count < most_items ? count : most_items);
    if (count <= most_items) return;
  }
  Table<T, few_items> table;
  fill(table, count);
}

template <class T, class Update>
void update_all(const UpdateItem<T>* items, std::int64_t count, const Update& update, void* stream) {
  for_tables(items, count, [&](const auto& table) { launch_update(table, update, stream); });
}

template <class T, int capacity, class Update>
void launch_update(const Table<T, capacity>& table, const Update& update, void* stream) {
  GYRE_LAUNCH((update_kernel<T, capacity, Update>), prim::Grid{table.blocks}, block, 0, stream, table,
              update);
}

template <class T, int capacity>
void launch_squares(const Table<T, capacity>& table, double* parts, void* stream) {
  GYRE_LAUNCH((square_kernel<T, capacity>), prim::Grid{table.blocks}, block, team_scratch * sizeof(double),
              stream, table, parts);
}

}  // namespace

template <class T>
void launch_adamw(const UpdateItem<T>* items, std::int64_t count, const AdamWFactors& factors, void* stream) {
  update_all(items, count, AdamW<T>(factors), stream);
}

template <class T>
void launch_sgd(const UpdateItem<T>* items, std::int64_t count, const SgdFactors& factors, void* stream) {
  update_all(items, count, Sgd<T>(factors), stream);
}

template <class T>
void launch_lerp(const UpdateItem<T>* items, std::int64_t count, double weight, void* stream) {
  update_all(items, count, Lerp<T>{static_cast<T>(weight)}, stream);
}

template <class T>
std::int64_t sum_squares_workspace(const UpdateItem<T>* items, std::int64_t count) {
  std::int64_t blocks = 0;
  for (std::int64_t i = 0; i < count; ++i) blocks += prim::blocks(items[i].count, chunk);
  return blocks;
}

template <class T>
void launch_sum_squares(const UpdateItem<T>* items, std::int64_t count, double* workspace, double* result,
                        void* stream) {
  double* parts = workspace;
  for_tables(items, count, [&](const auto& table) {
    launch_squares(table, parts, stream);
    parts += table.blocks;
  });
  GYRE_LAUNCH(add_parts_kernel, prim::Grid{1}, block, team_scratch * sizeof(double), stream, workspace,
              static_cast<std::int64_t>(parts - workspace), result);
}

#define GYRE_INSTANTIATE(T)                                                                   \
  template void launch_adamw(const UpdateItem<T>*, std::int64_t, const AdamWFactors&, void*); \
  template void launch_sgd(const UpdateItem<T>*, std::int64_t, const SgdFactors&, void*);     \
  template void launch_lerp(const UpdateItem<T>*, std::int64_t, double, void*);               \
  template std::int64_t sum_squares_workspace(const UpdateItem<T>*, std::int64_t);            \
  template void launch_sum_squares(const UpdateItem<T>*, std::int64_t, double*, double*, void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
