#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

// Dense device arrays; T = float, double, prim::half_t or prim::bf16_t, sums of the 16-bit types in f32.

/// Elements of S that launch_sum needs beside its arguments; may be 0.
std::int64_t sum_workspace(std::int64_t outer, std::int64_t extent, std::int64_t inner);
/// x [outer, extent, inner] → y [outer, inner]; no extent is 0. In a fixed order, along a tree: the error
/// grows with the logarithm of the extent. S: float, or double for double.
template <class T, class S>
void launch_sum(const T* x, S* y, std::int64_t outer, std::int64_t extent, std::int64_t inner, S* workspace,
                void* stream);
/// x [rows, n], n ≥ 1 → index of each row's first maximum; a NaN counts as the maximum.
template <class T>
void launch_argmax(const T* x, std::int64_t* index, std::int64_t rows, std::int64_t n, void* stream);

}  // namespace gyre::kernels::cuda
