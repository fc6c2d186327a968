#pragma once

#include "layers/family.h"
#include "layers/window.h"

namespace gyre {

/// Multi-head self-attention within windows of a square of tokens, with a learned bias for every relative
/// position (Swin): [B, grid², width], tokens row-major → the same. Children: qkv (width → 3·width), proj.
/// Parameter: relative_position_bias_table [(2·window - 1)², heads], truncated normal 0.02, never decayed. In
/// an equivariant family its average over the group is used, which makes the layer equivariant where the
/// windows are exact.
class WindowAttention : public Module {
 public:
  /// Throws ShapeError unless heads divides width into whole orbits and windows tile the grid.
  WindowAttention(const LayerFamily& family, std::int64_t width, std::int64_t heads,
                  const WindowConfig& windows, RandomStream& stream);

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return equivariant_ ? "EqWindowAttention" : "WindowAttention"; }
  std::string describe() const override;
  const WindowConfig& windows() const { return windows_; }

 private:
  /// [heads, area, area].
  Variable bias();

  bool equivariant_;
  std::int64_t width_, heads_;
  WindowConfig windows_;
  Tensor order_, inverse_, mask_, relative_;
  Tensor turned_;  ///< undefined where there is nothing to average
  Parameter* table_;
  Module* qkv_;
  Module* proj_;
  Tensor bias_;  ///< cache of bias(), valid for version bias_from_ of the table
  std::uint64_t bias_from_ = 0;
};

}  // namespace gyre
