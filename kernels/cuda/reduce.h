#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace gyre::kernels::cuda {

/// x dense [A, R, K] → y dense [A, K], the sum over R.
void sum_middle(const Tensor& x, std::int64_t a, std::int64_t r, std::int64_t k, Tensor& y);
/// x dense [N, K], K ≥ 1.
void argmax_rows(const Tensor& x, std::vector<std::int64_t>& result);

}  // namespace gyre::kernels::cuda
