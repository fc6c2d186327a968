#pragma once

#include <vector>

#include "layers/family.h"
#include "models/model.h"

namespace gyre {

/// Vision transformer, pre-norm: patch embedding, class token, positions, blocks, norm, head. With an
/// equivariant family it is EQ-ViT (arXiv 2602.08047), whose logits do not change when the image is turned by
/// an element of the group: everything up to the norm commutes with the group, the head sums over t.
/// Parameters: cls_token (pool: token), patch_embed.proj, pos_embed, blocks.N.{norm1, attn.qkv, attn.proj,
/// norm2, mlp.fc1, mlp.fc2}, norm, head.
class Vit : public Model {
 public:
  /// `config` is resolved and valid. Each child draws its weights from a stream of its own under `seed`.
  Vit(const ModelConfig& config, std::uint64_t seed);

  Variable forward(const Variable& images) override;
  std::string_view kind() const override { return family_.equivariant() ? "EqVit" : "Vit"; }
  std::string describe() const override;

 private:
  /// The class token in front of tokens [B, patches, width].
  Variable prepend_class_token(const Variable& tokens) const;

  LayerFamily family_;
  Parameter* cls_token_ = nullptr;
  Module* patch_embed_ = nullptr;
  Module* pos_embed_ = nullptr;
  Module* pos_drop_ = nullptr;
  std::vector<Module*> blocks_;
  Module* norm_ = nullptr;
  Module* head_ = nullptr;
};

}  // namespace gyre
