#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

/// Which activation; numbered as GemmActivation.
enum class EpilogueActivation { none, gelu, gelu_tanh };

/// y[r][j] = activation(x[r][j] + bias[j]) for rows of n elements, `stride` apart. `before` takes the sums
/// and is laid out as x and y; it and `bias` may be null, and x may be `before` or y. T = double, float,
/// prim::half_t or prim::bf16_t.
template <class T>
void launch_epilogue(EpilogueActivation activation, std::int64_t rows, std::int64_t n, std::int64_t stride,
                     const T* x, const T* bias, T* before, T* y, void* stream);

}  // namespace gyre::kernels::cuda
