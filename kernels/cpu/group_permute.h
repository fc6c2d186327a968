#pragma once

#include <array>
#include <cstdint>

#include "core/group.h"

namespace gyre::kernels::cpu {

/// Element index[t][s] for each pair (t, s) of elements of a group of order T = 1, 2, 4 or 8.
using GroupTable = std::array<std::array<int, 8>, 8>;
/// t·s, or t⁻¹·s if `inverse`.
GroupTable group_table(const Group& group, bool inverse);

/// y[n·row + t·element + c·T + s] = x[n][c][index[t][s]] for x [rows, channels, T]; f32 or f64.
template <class T>
void repeat_permuted(int order, const GroupTable& index, std::int64_t rows, std::int64_t channels,
                     std::int64_t row, std::int64_t element, const T* x, T* y);

/// y[n][c][s] = Σ_t x[n][t][c][index[t][s]] for x [rows, T, channels, T].
template <class T>
void sum_permuted(int order, const GroupTable& index, std::int64_t rows, std::int64_t channels, const T* x,
                  T* y);

}  // namespace gyre::kernels::cpu
