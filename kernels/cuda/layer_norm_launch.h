#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

// Dense device arrays; T = float, double, prim::half_t or prim::bf16_t, the 16-bit types with f32 arithmetic.
// x, y, grad, dx [rows, n]; gain, bias, dgain, dbias [n / repeat] and statistics [rows] in S: float, or
// double for double; n ≥ 1.

template <class T, class S>
void launch_layer_norm_forward(const T* x, const S* gain, const S* bias, int repeat, double eps, T* y,
                               S* mean, S* rstd, std::int64_t rows, std::int64_t n, void* stream);
/// Elements of S that the backward needs beside its arguments.
std::int64_t layer_norm_workspace(std::int64_t rows, std::int64_t n);
/// Overwrites dx, dgain and dbias; rows may be 0.
template <class T, class S>
void launch_layer_norm_backward(const T* x, const S* gain, const S* mean, const S* rstd, const T* grad,
                                int repeat, T* dx, S* dgain, S* dbias, S* workspace, std::int64_t rows,
                                std::int64_t n, void* stream);

}  // namespace gyre::kernels::cuda
