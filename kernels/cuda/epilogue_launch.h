#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

/// Which activation; numbered as GemmActivation.
enum class EpilogueActivation { none, gelu, gelu_tanh };

/// c[r][j] = activation(c[r][j] + bias[j]) for rows of n elements, `stride` apart; `bias` and `before` may be
/// null. `before` takes the sums and is laid out as c. T = double, float, prim::half_t or prim::bf16_t.
template <class T>
void launch_epilogue(EpilogueActivation activation, std::int64_t rows, std::int64_t n, std::int64_t stride,
                     T* c, const T* bias, T* before, void* stream);

}  // namespace gyre::kernels::cuda
