#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace gyre::kernels {

/// x [B, M], index i64 [K] → y [B, K], y[b, k] = x[b, index[k]].
/// ValueError names the first index outside [0, M).
Tensor gather(const Tensor& x, const Tensor& index);
/// grad [B, K], index i64 [K] → [B, m]: adds grad[b, k] to column index[k]; the gradient of gather.
Tensor gather_backward(const Tensor& grad, const Tensor& index, std::int64_t m);
/// x [B, L, C], index i64 [K] → y [B, K, C], y[b, k] = x[b, index[k]].
/// ValueError names the first index outside [0, L).
Tensor gather_rows(const Tensor& x, const Tensor& index);
/// Joins at least one tensor of any equal type along `dim`; all other extents must agree.
Tensor concat(std::span<const Tensor> parts, int dim);

}  // namespace gyre::kernels
