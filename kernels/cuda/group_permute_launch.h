#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

// Dense device arrays; T = float, double, prim::half_t or prim::bf16_t, sums of the 16-bit types in f32.

/// Element index[t][s] for each pair of elements of a group of order 1, 2, 4 or 8.
struct PairTable {
  int order = 1;
  int index[8][8] = {};
};

/// y[n][t][c][s] = x[n][c][index[t][s]] for x [rows, channels, T].
template <class T>
void launch_repeat_permuted(const PairTable& table, std::int64_t rows, std::int64_t channels, const T* x,
                            T* y, void* stream);
/// y[n][c][s] = Σ_t x[n][t][c][index[t][s]] for x [rows, T, channels, T].
template <class T>
void launch_sum_permuted(const PairTable& table, std::int64_t rows, std::int64_t channels, const T* x, T* y,
                         void* stream);

}  // namespace gyre::kernels::cuda
