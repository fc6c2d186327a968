#pragma once

#include <cstdint>
#include <memory>

#include "core/group.h"
#include "core/random.h"
#include "kernels/eq_linear.h"
#include "layers/layer_norm.h"
#include "layers/module.h"

namespace gyre {

/// What a network is made of: ordinary layers, or their twins that commute with a group. Blocks are written
/// once in terms of a family. Widths count all channels, C·T; a width that is not a multiple of T throws
/// ShapeError.
struct LayerFamily {
  const Group* group = nullptr;  ///< null: ordinary layers
  kernels::EqLinearOptions options = {};
  double norm_eps = 1e-6;

  bool equivariant() const { return group != nullptr; }
  int order() const { return group ? group->order() : 1; }
  /// Channels per group element.
  std::int64_t channels(std::int64_t width) const;

  /// Linear (truncated normal 0.02, bias 0) or EqLinear.
  std::unique_ptr<Module> linear(std::int64_t in, std::int64_t out, RandomStream& stream,
                                 kernels::Activation activation = kernels::Activation::none,
                                 bool bias = true) const;
  /// LayerNorm or EqLayerNorm, with norm_eps; `before_product` as LayerNorm::set_before_product.
  std::unique_ptr<LayerNorm> norm(std::int64_t width, bool before_product = false) const;
};

}  // namespace gyre
