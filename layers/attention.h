#pragma once

#include "layers/family.h"

namespace gyre {

/// Multi-head self-attention, [B, L, width] → the same. Children: qkv (width → 3·width), proj. The channels
/// of qkv are read as [3][heads][head_dim]; in an equivariant family head_dim is a multiple of the group
/// order, so that scores sum over whole orbits and are invariant (EQ-ViT paper, arXiv 2602.08047). Scores are
/// scaled by head_dim^-1/2.
class Attention : public Module {
 public:
  /// Throws ShapeError unless heads divides width into whole orbits.
  Attention(const LayerFamily& family, std::int64_t width, std::int64_t heads, RandomStream& stream);

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return equivariant_ ? "EqAttention" : "Attention"; }
  std::string describe() const override;

 private:
  bool equivariant_;
  std::int64_t width_, heads_;
  Module* qkv_;
  Module* proj_;
};

}  // namespace gyre
