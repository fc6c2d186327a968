#include "tests/simt/checked/bugs.h"

#include "core/cuda/prim.cuh"

namespace gyre::simt::bugs {
namespace {

constexpr int threads = 64;

GYRE_DEVICE unsigned own() { return threadIdx.x; }
GYRE_DEVICE unsigned mirror() { return threads - 1 - threadIdx.x; }
/// Without it, a missing barrier may show as uninitialised memory as well.
GYRE_DEVICE void clear_tile(float* tile) {
  tile[own()] = 0;
  tile[threads + own()] = 0;
  prim::sync();
}
GYRE_DEVICE unsigned base() { return blockIdx.x * threads; }

template <bool planted>
GYRE_KERNEL(threads)
missing_barrier(const float* x, float* y) {
  GYRE_SHARED(float, tile);
  clear_tile(tile);
  tile[own()] = x[base() + own()];
  if (!planted) prim::sync();
  y[base() + own()] = tile[mirror()];
}

template <bool planted>
GYRE_KERNEL(threads)
missing_barrier_of_loop(const float* x, float* y) {
  GYRE_SHARED(float, tile);
  for (int round = 0; round < 2; ++round) {
    tile[own()] = x[base() + own()];
    prim::sync();
    y[base() + own()] = tile[mirror()];
    if (!planted) prim::sync();
  }
}

template <bool planted>
GYRE_KERNEL(threads)
missing_warp_barrier(const float* x, float* y) {
  GYRE_SHARED(float, tile);
  clear_tile(tile);
  tile[own()] = x[base() + own()];
  if (!planted) prim::sync_warp();
  y[base() + own()] = tile[own() ^ 31U];
}

enum class Mistake { none, no_wait, weak_wait, no_commit, no_barrier };

// Two groups of one copy each.
template <Mistake mistake>
GYRE_KERNEL(threads)
copies(const float* x, float* y) {
  GYRE_SHARED(float, tile);
  clear_tile(tile);
  prim::cp_async4(tile + own(), x + base() + own());
  if (mistake != Mistake::no_commit) prim::cp_commit();
  prim::cp_async4(tile + threads + own(), x + base() + own());
  if (mistake != Mistake::no_commit) prim::cp_commit();
  if (mistake == Mistake::weak_wait)
    prim::cp_wait<1>();
  else if (mistake != Mistake::no_wait)
    prim::cp_wait<0>();
  if (mistake != Mistake::no_barrier) prim::sync();
  y[base() + own()] = tile[mirror()] + tile[threads + mirror()];
  prim::cp_commit();
  prim::cp_wait<0>();
}

template <bool planted>
GYRE_KERNEL(threads)
copy_never_waited_for(const float* x, float* y) {
  GYRE_SHARED(float, tile);
  prim::cp_async4(tile + own(), x + base() + own());
  prim::cp_commit();
  if (!planted) prim::cp_wait<0>();
  y[base() + own()] = x[base() + own()];
}

template <bool planted>
GYRE_KERNEL(threads)
global_write_off_by_one(const float* x, float* y) {
  y[base() + mirror() + (planted ? 1 : 0)] = x[base() + own()];
}

template <bool planted>
GYRE_KERNEL(threads)
global_read_off_by_one(const float* x, float* y) {
  y[base() + own()] = x[base() + mirror() + (planted ? 1 : 0)];
}

template <bool planted>
GYRE_KERNEL(threads)
null_read(const float* x, float* y) {
  const float* const from = planted ? nullptr : x;
  y[base() + own()] = from[base() + mirror()];
}

template <bool planted>
GYRE_KERNEL(threads)
shared_write_off_by_one(const float* x, float* y) {
  GYRE_SHARED(float, tile);
  const unsigned shift = planted ? threads + 1 : threads;  // the carve has two arrays
  tile[shift + own()] = x[base() + own()];
  prim::sync();
  y[base() + own()] = tile[shift + mirror()];
}

template <bool planted>
GYRE_KERNEL(threads)
uninitialised_shared(const float* x, float* y) {
  GYRE_SHARED(float, tile);
  if (!planted || own() != 5) tile[own()] = x[base() + own()];
  prim::sync();
  y[base() + own()] = tile[mirror()];
}

template <bool planted>
GYRE_KERNEL(threads)
uninitialised_global(const float* x, float* y) {
  if (!planted) y[base() + own()] = 0;
  y[base() + own()] += x[base() + mirror()];
}

template <bool planted>
GYRE_KERNEL(threads)
same_element_twice(const float* x, float* y) {
  y[base() + (planted ? own() / 2 : own())] = x[base() + mirror()];
}

template <bool planted>
GYRE_KERNEL(threads)
race_across_blocks(const float* x, float* y) {
  y[planted ? own() : base() + own()] = x[base() + mirror()];
}

GYRE_KERNEL(threads) clear(float* y) { y[base() + own()] = 0; }

template <bool planted>
GYRE_KERNEL(threads)
sum_across_blocks(const float* x, float* y) {
  if (planted)
    y[own()] += x[base() + own()];
  else
    prim::atomic_add(y + own(), x[base() + own()]);
}

template <bool planted>
GYRE_KERNEL(threads)
sum_after_atomic(const float* x, float* y) {
  prim::atomic_add(y + base() + own() / 2, x[base() + own()]);
  if (!planted) prim::sync();
  if (own() % 2 == 0) y[base() + own() / 2] *= 2;
}

template <bool planted>
GYRE_KERNEL(threads)
overlapping_carve(const float* x, float* y) {
  GYRE_SHARED(float, first);
  clear_tile(first);
  float* const second = first + (planted ? threads / 2 : threads);
  first[own()] = x[base() + own()];
  second[own()] = 2 * x[base() + own()];
  prim::sync();
  y[base() + own()] = second[mirror()] - first[mirror()];
}

template <bool planted>
GYRE_KERNEL(threads)
divergent_barrier(const float* x, float* y) {
  GYRE_SHARED(float, tile);
  tile[own()] = x[base() + own()];
  if (planted && own() < 32)
    prim::sync();
  else
    prim::sync();
  y[base() + own()] = tile[mirror()];
}

template <bool planted>
GYRE_KERNEL(threads)
partial_collective(const float* x, float* y) {
  float value = x[base() + own()];
  if (!planted || prim::lane() < 16) value = prim::shfl_xor(value, 1);
  y[base() + own()] = value;
}

template <bool planted>
GYRE_KERNEL(threads)
two_collectives(const float* x, float* y) {
  float value = x[base() + own()];
  if (planted && prim::lane() < 16)
    value = prim::shfl_xor(value, 1);
  else
    value = prim::shfl_xor(value, 1);
  y[base() + own()] = value;
}

template <bool planted>
GYRE_KERNEL(threads)
collective_beside_barrier(const float* x, float* y) {
  float value = x[base() + own()];
  if (!planted || prim::lane() < 16) value = prim::shfl_xor(value, 1);
  prim::sync();
  y[base() + own()] = value;
}

template <bool planted>
GYRE_KERNEL(threads)
return_before_barrier(const float* x, float* y) {
  GYRE_SHARED(float, tile);
  if (planted && own() >= 32) return;
  tile[own()] = x[base() + own()];
  prim::sync();
  y[base() + own()] = tile[mirror()];
}

template <bool planted>
GYRE_KERNEL(threads)
misaligned_access(const float* x, float* y) {
  const unsigned first = base() + (own() < threads / 4 ? own() * 4 : 0) + (planted ? 2 : 0);
  const auto pack = prim::ld128(x + first);
  if (own() < threads / 4) prim::st128(y + first, pack);
}

template <bool planted>
GYRE_KERNEL(threads)
wrong_lane(const float* x, float* y) {
  float sum = x[base() + own()];
  for (unsigned delta = 16; delta > 0; delta /= 2) sum += prim::shfl_down(sum, delta);
  y[base() + own()] = 0;
  prim::sync();
  if (prim::lane() == (planted ? 31 : 0)) y[base() + static_cast<unsigned>(prim::warp())] = sum;
}

using Kernel = void (*)(const float*, float*);

Kernel kernel_of(Bug bug, bool planted) {
  const auto choose = [planted](Kernel with, Kernel without) { return planted ? with : without; };
  switch (bug) {
    case Bug::missing_barrier: return choose(missing_barrier<true>, missing_barrier<false>);
    case Bug::missing_barrier_of_loop:
      return choose(missing_barrier_of_loop<true>, missing_barrier_of_loop<false>);
    case Bug::missing_warp_barrier: return choose(missing_warp_barrier<true>, missing_warp_barrier<false>);
    case Bug::missing_wait: return choose(copies<Mistake::no_wait>, copies<Mistake::none>);
    case Bug::wait_too_weak: return choose(copies<Mistake::weak_wait>, copies<Mistake::none>);
    case Bug::missing_commit: return choose(copies<Mistake::no_commit>, copies<Mistake::none>);
    case Bug::missing_barrier_after_wait: return choose(copies<Mistake::no_barrier>, copies<Mistake::none>);
    case Bug::copy_never_waited_for: return choose(copy_never_waited_for<true>, copy_never_waited_for<false>);
    case Bug::global_write_off_by_one:
      return choose(global_write_off_by_one<true>, global_write_off_by_one<false>);
    case Bug::global_read_off_by_one:
      return choose(global_read_off_by_one<true>, global_read_off_by_one<false>);
    case Bug::null_read: return choose(null_read<true>, null_read<false>);
    case Bug::shared_write_off_by_one:
      return choose(shared_write_off_by_one<true>, shared_write_off_by_one<false>);
    case Bug::uninitialised_shared: return choose(uninitialised_shared<true>, uninitialised_shared<false>);
    case Bug::uninitialised_global: return choose(uninitialised_global<true>, uninitialised_global<false>);
    case Bug::same_element_twice: return choose(same_element_twice<true>, same_element_twice<false>);
    case Bug::race_across_blocks: return choose(race_across_blocks<true>, race_across_blocks<false>);
    case Bug::plain_sum_across_blocks: return choose(sum_across_blocks<true>, sum_across_blocks<false>);
    case Bug::plain_sum_after_atomic: return choose(sum_after_atomic<true>, sum_after_atomic<false>);
    case Bug::overlapping_carve: return choose(overlapping_carve<true>, overlapping_carve<false>);
    case Bug::divergent_barrier: return choose(divergent_barrier<true>, divergent_barrier<false>);
    case Bug::partial_collective: return choose(partial_collective<true>, partial_collective<false>);
    case Bug::two_collectives: return choose(two_collectives<true>, two_collectives<false>);
    case Bug::collective_beside_barrier:
      return choose(collective_beside_barrier<true>, collective_beside_barrier<false>);
    case Bug::return_before_barrier: return choose(return_before_barrier<true>, return_before_barrier<false>);
    case Bug::misaligned_access: return choose(misaligned_access<true>, misaligned_access<false>);
    case Bug::wrong_lane: return choose(wrong_lane<true>, wrong_lane<false>);
  }
  return nullptr;
}

}  // namespace

void run(Bug bug, bool planted, const float* x, float* y) {
  if (bug == Bug::plain_sum_across_blocks || bug == Bug::plain_sum_after_atomic)
    GYRE_LAUNCH(clear, prim::Grid{2}, threads, 0, nullptr, y);
  const Kernel planted_kernel = kernel_of(bug, planted);
  GYRE_LAUNCH(planted_kernel, prim::Grid{2}, threads, 2 * threads * sizeof(float), nullptr, x, y);
}

}  // namespace gyre::simt::bugs
