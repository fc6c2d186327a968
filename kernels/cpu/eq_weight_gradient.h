#pragma once

#include "core/group.h"
#include "core/tensor.h"

namespace gyre::kernels::cpu {

/// dW[d,c,r] = Σ_n Σ_t dy[n,d,t]·x[n,c,t·r] for dense f32 x [N, C, T], dy [N, D, T]: as many products as the
/// dense gradient [D·T, C·T] takes, which is folded in the registers instead of memory. The fastest way for
/// few rows, whose sums cost less than writing them down. Groups of order 1, 2, 4 or 8.
Tensor eq_weight_gradient(const Group& group, const Tensor& x, const Tensor& dy);

}  // namespace gyre::kernels::cpu
