#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace gyre::kernels::cuda {

/// x dense [B, M], index dense and checked [K] → y dense [B, K].
void gather(const Tensor& x, const Tensor& index, Tensor& y);
/// grad dense [B, K], index dense and checked [K] → result dense [B, M], overwritten; sums in the order of
/// the index.
void gather_backward(const Tensor& grad, const Tensor& index, Tensor& result);
/// Dense x [B, L, C], index [K], y [B, K, C].
void gather_rows(const Tensor& x, const Tensor& index, Tensor& y);
/// Dense parts seen as [outer, extent of the part · inner]; y dense.
void concat(std::span<const Tensor> parts, std::int64_t outer, Tensor& y);

}  // namespace gyre::kernels::cuda
