#pragma once

#include <cstdint>

#include "models/model_config.h"

namespace gyre {

/// Size and cost of a model. FLOPs are per image, forward, one multiply-add counted as 2; norms, softmax,
/// GELU and residuals are left out. The rule of the Flash EQ-Linear paper (arXiv 2607.21271): an ordinary
/// linear layer costs 2·N·K·M + N·M with bias, a flash layer of quarter turns 12·N·C·D + 8·N·C + 18·N·D,
/// patch embedding and patch merging are dense and counted without bias.
struct ModelCounts {
  std::int64_t parameters = 0;
  std::int64_t linear_flops = 0;    ///< linear layers: of blocks, patch merging and head, by the paper's rule
  std::int64_t total_flops = 0;     ///< with patch embedding, QKᵀ and AV, by the paper's rule
  std::int64_t executed_flops = 0;  ///< total for what runs here: products of the chosen form, flash patch
                                    ///< embedding and merging
  bool exact = false;               ///< is_exact(): logits are exactly invariant under the model's group
};

/// Pure arithmetic: builds no weights, so it serves any size. `config` is resolved and validated here.
ModelCounts count_model(const ModelConfig& config);

}  // namespace gyre
