#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

// Dense device arrays [rows, n], neither 0; T = float, double, prim::half_t or prim::bf16_t, the 16-bit types
// with f32 arithmetic.

template <class T>
void launch_softmax_forward(const T* x, T* y, std::int64_t rows, std::int64_t n, void* stream);
template <class T>
void launch_softmax_backward(const T* y, const T* grad, T* result, std::int64_t rows, std::int64_t n,
                             void* stream);

}  // namespace gyre::kernels::cuda
