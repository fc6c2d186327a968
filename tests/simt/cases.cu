#include "tests/simt/cases.h"

#include "core/cuda/prim.cuh"

namespace gyre::simt::cases {
namespace {

constexpr int threads = 256;

GYRE_KERNEL(threads) subtract_block_sum_kernel(const float* x, float* y, std::int64_t n) {
  GYRE_SHARED(float, scratch);
  const std::int64_t i = prim::global_thread();
  const float value = i < n ? x[i] : 0.0F;
  const float sum = prim::block_sum(value, scratch);
  if (i < n) y[i] = value - sum;
}

}  // namespace

void subtract_block_sum(const float* x, float* y, std::int64_t n, void* stream) {
  GYRE_LAUNCH(subtract_block_sum_kernel, prim::Grid{prim::blocks(n, threads)}, threads,
              threads / 32 * sizeof(float), stream, x, y, n);
}

}  // namespace gyre::simt::cases
