#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace gyre::kernels {

// f32 or f64 with any strides, on CUDA also f16 or bf16, added in f32. Blocks of sums keep the error growing
// with the logarithm of the count.

/// Sum over `dims` (negative counts from the end, none twice); they stay with extent 1 if `keep_dim`.
Tensor sum(const Tensor& x, std::span<const int> dims, bool keep_dim);
/// The same as it was added, not rounded to 16 bits: of wide_type.
Tensor wide_sum(const Tensor& x, std::span<const int> dims, bool keep_dim);
/// Mean over `dims`; ShapeError if they hold no element.
Tensor mean(const Tensor& x, std::span<const int> dims, bool keep_dim);
/// Sums x down to `shape`, which broadcasts to x's shape: the gradient of broadcasting.
/// x itself if nothing changes.
Tensor sum_to(const Tensor& x, const Shape& shape);
/// x [N, K], K ≥ 1 → the index of each row's first maximum; a NaN counts as the maximum.
std::vector<std::int64_t> argmax_rows(const Tensor& x);

}  // namespace gyre::kernels
