#pragma once

#include <optional>

#include "layers/family.h"
#include "layers/window.h"

namespace gyre {

/// Sizes of a transformer block.
struct BlockConfig {
  std::int64_t width = 0;  ///< all channels
  std::int64_t heads = 0;
  std::int64_t hidden = 0;  ///< of the MLP, all channels
  double dropout = 0;
  double drop_path = 0;
  std::uint64_t first_site = 0;              ///< of `sites` layer numbers for dropout and drop path
  std::optional<WindowConfig> windows = {};  ///< attention within windows, else over all tokens

  static constexpr std::uint64_t sites = 5;
};

/// Pre-norm block, [B, L, width] → the same: x + attn(norm1(x)), then + mlp(norm2(·)); drop path per sample
/// and branch.
class Block : public Module {
 public:
  Block(const LayerFamily& family, const BlockConfig& config, RandomStream& stream);

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return equivariant_ ? "EqBlock" : "Block"; }

 private:
  bool equivariant_;
  LayerNorm* norm1_;
  Module* attn_;
  Module* drop_;
  Module* drop_path1_;
  LayerNorm* norm2_;
  Module* mlp_;
  Module* drop_path2_;
};

}  // namespace gyre
