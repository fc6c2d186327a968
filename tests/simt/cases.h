#pragma once

#include <cstdint>

// Kernels that use one primitive each and write what every thread got, for the emulator and for a GPU.
// T stands for the types that the source instantiates.
namespace gyre::simt::cases {

/// out[i] = block x, y, z, thread, block size, grid x, y, z of thread i of the whole grid, 8 numbers each.
void indices(std::int64_t x, std::int64_t y, std::int64_t z, int block, unsigned* out, void* stream);

enum class Exchange { shfl, shfl_xor, shfl_down, shfl_up, warp_sum, warp_max };
/// One block of 64 threads: y[i] = exchange(x[i], argument[i]). T = int, unsigned, long long, float, double.
template <class T>
void exchange(Exchange what, const T* x, const int* argument, T* y, void* stream);
/// One block of 64 threads.
void ballot(const int* condition, unsigned* bits, void* stream);

/// y[2 i] = the sum and y[2 i + 1] = the maximum over the `block` elements of thread i's block; 4 blocks.
/// T = int, float, double.
template <class T>
void block_sum_max(const T* x, int block, T* y, void* stream);

/// y = x by 16-byte accesses, n a multiple of 16 / sizeof(T). T = float, half_t as its bits, double.
template <class T>
void copy128(const T* x, T* y, std::int64_t n, void* stream);

/// y = x with zeros beyond x: two blocks of 64 threads carry 4 tiles each through two stages of shared
/// memory, in chunks of 4 floats (wide) or one. y has 2 · 4 · 64 chunks, x `valid` of them.
void staged_copy(bool wide, const float* x, float* y, std::int64_t valid, void* stream);

/// count[bin[i]] += amount[i]; old[i] = what stood there. T = int, unsigned, unsigned long long, float,
/// double.
template <class T>
void histogram(const int* bin, const T* amount, T* count, T* old, std::int64_t n, void* stream);

/// One warp: `matrices` holds 4 matrices of 8 x 8 16-bit numbers; registers[lane · count + i]. Matrices
/// beyond `count` stay untouched.
void load_matrices(int count, bool transposed, const std::uint16_t* matrices, std::uint32_t* registers,
                   void* stream);

enum class Product { f16, bf16, tf32 };
/// One warp: d += a b on fragments; a and d 4 registers per lane, b 2.
void multiply(Product type, const std::uint32_t* a, const std::uint32_t* b, float* d, void* stream);

/// The conversions of prim_number.cuh; outputs of n elements.
void from_bits(const std::uint16_t* bits, float* half, float* bf16, std::int64_t n, void* stream);
void to_bits(const float* x, std::uint16_t* half, std::uint16_t* bf16, std::uint32_t* tf32, std::int64_t n,
             void* stream);

}  // namespace gyre::simt::cases
