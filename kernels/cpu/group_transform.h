#pragma once

#include <cstdint>

#include "core/group.h"

namespace gyre::kernels::cpu {

/// planes[p][n][c] = Σ_t m(p, t) · x[n][c][t] for m [P, T], x [rows, channels, T]; f32 or f64, T = 1, 2, 4
/// or 8.
template <class T>
void to_planes(const Matrix& m, std::int64_t rows, std::int64_t channels, const T* x, T* planes);

/// y[n][c][t] = Σ_p m(t, p) · planes[p][n][c] + bias[c] for m [T, P]; `bias` may be null.
template <class T>
void from_planes(const Matrix& m, std::int64_t rows, std::int64_t channels, const T* planes, const T* bias,
                 T* y);

}  // namespace gyre::kernels::cpu
