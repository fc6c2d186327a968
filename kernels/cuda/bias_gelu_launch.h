#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

// Dense device arrays; T = float, double, prim::half_t or prim::bf16_t, the 16-bit types with f32 arithmetic.

/// Parts that the rows are summed in: one if there are none.
std::int64_t bias_gelu_parts(std::int64_t rows);
/// dx = grad·gelu'(before) for [rows, n], and the sums of dx over the rows of each part: sums [parts, n] in
/// S, which is float, or double for double.
template <class T, class S>
void launch_bias_gelu_backward(const T* before, const T* grad, T* dx, S* sums, std::int64_t rows,
                               std::int64_t n, void* stream);

}  // namespace gyre::kernels::cuda
