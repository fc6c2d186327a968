#pragma once

#include <span>

#include "core/tensor.h"
#include "kernels/optimizer.h"

namespace gyre::kernels::cuda {

// Lists of dense tensors of equal length and agreeing shapes and types; every gradient is defined.

void adamw_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> m,
                std::span<Tensor> v, const AdamWStep& options);
/// `buffers` may be empty if momentum is 0.
void sgd_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> buffers,
              const SgdStep& options);
void lerp(std::span<Tensor> target, std::span<const Tensor> source, double weight);
/// Σ g².
void sum_squares(std::span<const Tensor> grads, double& result);

}  // namespace gyre::kernels::cuda
