#pragma once

#include "core/group.h"
#include "core/tensor.h"

namespace gyre::kernels::cpu {

/// dW[d,c,r] = Σ_n Σ_t dy[n,d,t]·x[n,c,t·r] for dense f32 x [N, C, T], dy [N, D, T]: as many products as the
/// dense gradient [D·T, C·T] takes, which is folded in the registers instead of memory. The fastest way for
/// few rows, whose sums cost less than writing them down. Groups of order 1, 2, 4 or 8.
Tensor eq_weight_gradient(const Group& group, const Tensor& x, const Tensor& dy);

/// How many of `threads` threads it keeps busy for x [rows, C, T] and dy [rows, D, T].
int eq_weight_gradient_parts(int order, std::int64_t rows, std::int64_t channels_in,
                             std::int64_t channels_out, int threads);

}  // namespace gyre::kernels::cpu
