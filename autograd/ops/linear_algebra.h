#pragma once

#include <memory>

#include "autograd/variable.h"
#include "core/group.h"
#include "kernels/eq_linear.h"
#include "kernels/linear.h"

namespace gyre {

using kernels::Activation;
using kernels::EqBackend;
using kernels::EqLinearOptions;

// In an AutocastScope factors are taken, and results returned, in its type.

/// [..., M, K]·[..., K, N] → [..., M, N]; equal leading extents, or `b` of rank 2 for all of them.
Variable matmul(const Variable& a, const Variable& b);

/// y = x Wᵀ + b; x [..., K], w [M, K], b [M] or undefined → [..., M]. `cache` belongs to the layer and keeps
/// W packed. With an activation one operation computes f(y), which saves passes over y.
Variable linear(const Variable& x, const Variable& w, const Variable& b,
                std::shared_ptr<kernels::PackedWeight> cache = nullptr,
                Activation activation = Activation::none);

/// Y[n,d,t] = Σ_c Σ_s X[n,c,s]·W[d,c,t⁻¹s] + b[d] (Flash EQ-Linear paper, arXiv 2607.21271); x [..., C·T], w
/// [D, C, T], b [D] or undefined → [..., D·T]. `planes` belongs to the layer and keeps what is derived from
/// W. With an activation one operation computes f(Y), which saves passes over Y.
Variable eq_linear(const Group& group, const Variable& x, const Variable& w, const Variable& b,
                   EqLinearOptions options = {}, std::shared_ptr<kernels::EqPlanes> planes = nullptr,
                   Activation activation = Activation::none);

}  // namespace gyre
