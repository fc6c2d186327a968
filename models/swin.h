#pragma once

#include <vector>

#include "layers/family.h"
#include "models/model.h"

namespace gyre {

/// Swin transformer: patch embedding with norm, stages of blocks with attention within windows that move by
/// half a window every second block, patch merging between stages, norm, mean over tokens, head. With an
/// equivariant family every layer commutes with the group where windows are exact (docs/math.md), and the
/// head sums over t.
/// Parameters: patch_embed.{proj, norm}, layers.N.downsample.{norm, reduction} (N > 0),
/// layers.N.blocks.M.{norm1, attn.relative_position_bias_table, attn.qkv, attn.proj, norm2, mlp.fc1,
/// mlp.fc2}, norm, head.fc.
class Swin : public Model {
 public:
  /// `config` is resolved and valid. Each child draws its weights from a stream of its own under `seed`.
  Swin(const ModelConfig& config, std::uint64_t seed);

  Variable forward(const Variable& images) override;
  std::string_view kind() const override { return family_.equivariant() ? "EqSwin" : "Swin"; }
  std::string describe() const override;

 private:
  LayerFamily family_;
  std::vector<Module*> layers_;  ///< from images to the last norm, in order
  Module* head_ = nullptr;
};

}  // namespace gyre
