#pragma once

#include <array>
#include <cstdint>

namespace gyre::kernels::cpu {

/// Element index[t][s] for each pair (t, s) of elements of a group of order T = 1, 2, 4 or 8.
using GroupTable = std::array<std::array<int, 8>, 8>;

/// y[n][t][c][s] = x[n][c][index[t][s]] for x [rows, channels, T]; f32 or f64.
template <class T>
void repeat_permuted(int order, const GroupTable& index, std::int64_t rows, std::int64_t channels, const T* x,
                     T* y);

/// y[n][c][s] = Σ_t x[n][t][c][index[t][s]] for x [rows, T, channels, T].
template <class T>
void sum_permuted(int order, const GroupTable& index, std::int64_t rows, std::int64_t channels, const T* x,
                  T* y);

}  // namespace gyre::kernels::cpu
