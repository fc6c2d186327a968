#include "tests/simt/cases.h"

#include "core/cuda/prim.cuh"

namespace gyre::simt::cases {
namespace {

using prim::Grid;

GYRE_KERNEL(64) indices_kernel(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned* const mine = out + (static_cast<std::size_t>(block) * blockDim.x + threadIdx.x) * 8;
  mine[0] = blockIdx.x;
  mine[1] = blockIdx.y;
  mine[2] = blockIdx.z;
  mine[3] = threadIdx.x;
  mine[4] = blockDim.x;
  mine[5] = gridDim.x;
  mine[6] = gridDim.y;
  mine[7] = gridDim.z;
}

template <class T>
GYRE_KERNEL(64)
exchange_kernel(Exchange what, const T* x, const int* argument, T* y) {
  const T value = x[threadIdx.x];
  const int a = argument[threadIdx.x];
  T result{};
  if (what == Exchange::shfl) result = prim::shfl(value, a);
  if (what == Exchange::shfl_xor) result = prim::shfl_xor(value, a);
  if (what == Exchange::shfl_down) result = prim::shfl_down(value, static_cast<unsigned>(a));
  if (what == Exchange::shfl_up) result = prim::shfl_up(value, static_cast<unsigned>(a));
  if (what == Exchange::warp_sum) result = prim::warp_sum(value);
  if (what == Exchange::warp_max) result = prim::warp_max(value);
  y[threadIdx.x] = result;
}

GYRE_KERNEL(64) ballot_kernel(const int* condition, unsigned* bits) {
  bits[threadIdx.x] = prim::ballot(condition[threadIdx.x] != 0);
}

template <class T>
GYRE_KERNEL(1024)
block_kernel(const T* x, T* y) {
  GYRE_SHARED(T, scratch);
  const std::int64_t i = prim::global_thread();
  y[2 * i] = prim::block_sum(x[i], scratch);
  y[2 * i + 1] = prim::block_max(x[i], scratch);
}

template <class T>
GYRE_KERNEL(64)
copy128_kernel(const T* x, T* y, std::int64_t n) {
  const std::int64_t i = prim::global_thread() * prim::Pack<T>::size;
  if (i < n) prim::st128(y + i, prim::ld128(x + i));
}

constexpr int tiles = 4, stages = 2;

template <int chunk>
GYRE_DEVICE void start_tile(int tile, float* shared, const float* x, std::int64_t valid) {
  const std::int64_t source =
      (static_cast<std::int64_t>(blockIdx.x) * tiles + tile) * blockDim.x + threadIdx.x;
  float* const to = shared + (static_cast<unsigned>(tile % stages) * blockDim.x + threadIdx.x) * chunk;
  const bool inside = tile < tiles && source < valid;
  const float* const from = x + (inside ? source * chunk : 0);
  if (tile < tiles) {
    if (chunk == 4)
      prim::cp_async16(to, from, inside);
    else
      prim::cp_async4(to, from, inside);
  }
  prim::cp_commit();
}

// Every thread reads what its mirror image in the block copied.
template <int chunk>
GYRE_KERNEL(64)
staged_kernel(const float* x, float* y, std::int64_t valid) {
  GYRE_SHARED(float, shared);
  const unsigned mirror = blockDim.x - 1 - threadIdx.x;
  start_tile<chunk>(0, shared, x, valid);
  for (int tile = 0; tile < tiles; ++tile) {
    start_tile<chunk>(tile + 1, shared, x, valid);
    prim::cp_wait<1>();
    prim::sync();
    const float* const from = shared + (static_cast<unsigned>(tile % stages) * blockDim.x + mirror) * chunk;
    float* const to =
        y + ((static_cast<std::int64_t>(blockIdx.x) * tiles + tile) * blockDim.x + mirror) * chunk;
    for (int i = 0; i < chunk; ++i) to[i] = from[i];
    prim::sync();
  }
}

template <class T>
GYRE_KERNEL(64)
histogram_kernel(const int* bin, const T* amount, T* count, T* old, std::int64_t n) {
  const std::int64_t i = prim::global_thread();
  if (i < n) old[i] = prim::atomic_add(count + bin[i], amount[i]);
}

template <int count, bool transposed>
GYRE_KERNEL(32)
matrices_kernel(const std::uint16_t* matrices, std::uint32_t* registers) {
  GYRE_SHARED(std::uint16_t, shared);
  for (unsigned i = threadIdx.x; i < 64 * count; i += 32) shared[i] = matrices[i];
  prim::sync();
  std::uint32_t loaded[count];
  const std::uint16_t* const row = shared + threadIdx.x % (8 * count) * 8;
  if constexpr (transposed)
    prim::ldmatrix_trans(loaded, row);
  else
    prim::ldmatrix(loaded, row);
  for (unsigned i = 0; i < count; ++i) registers[threadIdx.x * count + i] = loaded[i];
}

template <Product type>
GYRE_KERNEL(32)
multiply_kernel(const std::uint32_t* a, const std::uint32_t* b, float* d) {
  std::uint32_t own_a[4], own_b[2];
  float sum[4];
  for (unsigned i = 0; i < 4; ++i) own_a[i] = a[threadIdx.x * 4 + i];
  for (unsigned i = 0; i < 2; ++i) own_b[i] = b[threadIdx.x * 2 + i];
  for (unsigned i = 0; i < 4; ++i) sum[i] = d[threadIdx.x * 4 + i];
  if constexpr (type == Product::f16) prim::mma<prim::half_t>(sum, own_a, own_b);
  if constexpr (type == Product::bf16) prim::mma<prim::bf16_t>(sum, own_a, own_b);
  if constexpr (type == Product::tf32) prim::mma_tf32(sum, own_a, own_b);
  for (unsigned i = 0; i < 4; ++i) d[threadIdx.x * 4 + i] = sum[i];
}

GYRE_KERNEL(256) from_bits_kernel(const std::uint16_t* bits, float* half, float* bf16, std::int64_t n) {
  const std::int64_t i = prim::global_thread();
  if (i >= n) return;
  half[i] = prim::to_float(prim::half_t{bits[i]});
  bf16[i] = prim::to_float(prim::bf16_t{bits[i]});
}

GYRE_KERNEL(256)
to_bits_kernel(const float* x, std::uint16_t* half, std::uint16_t* bf16, std::uint32_t* tf32,
               std::int64_t n) {
  const std::int64_t i = prim::global_thread();
  if (i >= n) return;
  half[i] = prim::to_half(x[i]).bits;
  bf16[i] = prim::to_bf16(x[i]).bits;
  tf32[i] = prim::to_tf32(x[i]);
}

}  // namespace

void indices(std::int64_t x, std::int64_t y, std::int64_t z, int block, unsigned* out, void* stream) {
  GYRE_LAUNCH(indices_kernel, (Grid{x, y, z}), block, 0, stream, out);
}

template <class T>
void exchange(Exchange what, const T* x, const int* argument, T* y, void* stream) {
  GYRE_LAUNCH(exchange_kernel<T>, Grid{1}, 64, 0, stream, what, x, argument, y);
}
template void exchange(Exchange, const int*, const int*, int*, void*);
template void exchange(Exchange, const unsigned*, const int*, unsigned*, void*);
template void exchange(Exchange, const long long*, const int*, long long*, void*);
template void exchange(Exchange, const float*, const int*, float*, void*);
template void exchange(Exchange, const double*, const int*, double*, void*);

void ballot(const int* condition, unsigned* bits, void* stream) {
  GYRE_LAUNCH(ballot_kernel, Grid{1}, 64, 0, stream, condition, bits);
}

template <class T>
void block_sum_max(const T* x, int block, T* y, void* stream) {
  GYRE_LAUNCH(block_kernel<T>, Grid{4}, block, block / prim::warp_size * sizeof(T), stream, x, y);
}
template void block_sum_max(const int*, int, int*, void*);
template void block_sum_max(const float*, int, float*, void*);
template void block_sum_max(const double*, int, double*, void*);

template <class T>
void copy128(const T* x, T* y, std::int64_t n, void* stream) {
  GYRE_LAUNCH(copy128_kernel<T>, Grid{prim::blocks(n, 64 * prim::Pack<T>::size)}, 64, 0, stream, x, y, n);
}
template void copy128(const float*, float*, std::int64_t, void*);
template void copy128(const std::uint16_t*, std::uint16_t*, std::int64_t, void*);
template void copy128(const double*, double*, std::int64_t, void*);

void staged_copy(bool wide, const float* x, float* y, std::int64_t valid, void* stream) {
  const int bytes = stages * 64 * (wide ? 16 : 4);
  if (wide)
    GYRE_LAUNCH(staged_kernel<4>, Grid{2}, 64, bytes, stream, x, y, valid);
  else
    GYRE_LAUNCH(staged_kernel<1>, Grid{2}, 64, bytes, stream, x, y, valid);
}

template <class T>
void histogram(const int* bin, const T* amount, T* count, T* old, std::int64_t n, void* stream) {
  GYRE_LAUNCH(histogram_kernel<T>, Grid{prim::blocks(n, 64)}, 64, 0, stream, bin, amount, count, old, n);
}
template void histogram(const int*, const int*, int*, int*, std::int64_t, void*);
template void histogram(const int*, const unsigned*, unsigned*, unsigned*, std::int64_t, void*);
template void histogram(const int*, const unsigned long long*, unsigned long long*, unsigned long long*,
                        std::int64_t, void*);
template void histogram(const int*, const float*, float*, float*, std::int64_t, void*);
template void histogram(const int*, const double*, double*, double*, std::int64_t, void*);

void load_matrices(int count, bool transposed, const std::uint16_t* matrices, std::uint32_t* registers,
                   void* stream) {
  const auto start = [&](auto plain, auto trans) {
    GYRE_LAUNCH(transposed ? trans : plain, Grid{1}, 32, 128 * count, stream, matrices, registers);
  };
  if (count == 1) start(matrices_kernel<1, false>, matrices_kernel<1, true>);
  if (count == 2) start(matrices_kernel<2, false>, matrices_kernel<2, true>);
  if (count == 4) start(matrices_kernel<4, false>, matrices_kernel<4, true>);
}

void multiply(Product type, const std::uint32_t* a, const std::uint32_t* b, float* d, void* stream) {
  if (type == Product::f16) GYRE_LAUNCH(multiply_kernel<Product::f16>, Grid{1}, 32, 0, stream, a, b, d);
  if (type == Product::bf16) GYRE_LAUNCH(multiply_kernel<Product::bf16>, Grid{1}, 32, 0, stream, a, b, d);
  if (type == Product::tf32) GYRE_LAUNCH(multiply_kernel<Product::tf32>, Grid{1}, 32, 0, stream, a, b, d);
}

void from_bits(const std::uint16_t* bits, float* half, float* bf16, std::int64_t n, void* stream) {
  GYRE_LAUNCH(from_bits_kernel, Grid{prim::blocks(n, 256)}, 256, 0, stream, bits, half, bf16, n);
}

void to_bits(const float* x, std::uint16_t* half, std::uint16_t* bf16, std::uint32_t* tf32, std::int64_t n,
             void* stream) {
  GYRE_LAUNCH(to_bits_kernel, Grid{prim::blocks(n, 256)}, 256, 0, stream, x, half, bf16, tf32, n);
}

}  // namespace gyre::simt::cases
