#pragma once

#include "core/group.h"
#include "core/tensor.h"

namespace gyre {

/// Pixel (row, column).
struct Pixel {
  int row, col;
  bool operator==(const Pixel&) const = default;
};

/// Where element t of the group sends pixel p of a height × width grid: (t·x)(t·p) = x(p), docs/math.md
/// section 1. Throws ValueError for c8, ShapeError if t swaps axes and height ≠ width or p lies outside.
Pixel act_on_pixel(const Group& group, int t, Pixel p, int height, int width);

// The one public way to turn data by a group element; a(bX) = (ab)X holds exactly (docs/math.md section 1).
// Any strides and data type; results are dense, on the device of the data, though the CPU moves them.
// ValueError for an element outside the group, and for c8 where there are positions.

/// Images or position maps [..., H, W]: (g·x)(p) = x(g⁻¹p). Throws ShapeError if g swaps axes and H ≠ W.
Tensor act_on_image(const Group& group, int g, const Tensor& image);
/// Feature maps [..., T, H, W]: turns every map and moves the group index.
Tensor act_on_feature_map(const Group& group, int g, const Tensor& map);
/// Tokens [B, prefix + height·width, C·T]: grid tokens move, their group index too; `prefix` tokens move the
/// index only.
Tensor act_on_tokens(const Group& group, int g, const Tensor& tokens, int height, int width, int prefix = 0);
/// Vectors [..., C·T] without a position: the group index only.
Tensor act_on_index(const Group& group, int g, const Tensor& x);

}  // namespace gyre
