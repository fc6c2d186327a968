#pragma once

#include <cstdint>
#include <vector>

#include "core/group.h"
#include "core/group_action.h"
#include "core/tensor.h"

namespace gyre {

/// The orbits of the pixels of a size × size square under a group: row-major scan, the first unseen pixel p0
/// starts one.
struct OrbitTable {
  int order = 1;
  /// s·p0 at [orbit·order + s]; a short orbit lists each pixel several times.
  std::vector<Pixel> pixels;
  /// |S| for the stabiliser S = {s : s·p0 = p0}: 1 for a full orbit.
  std::vector<int> stabilisers;

  std::int64_t orbits() const { return static_cast<std::int64_t>(stabilisers.size()); }
};

/// Throws ValueError for a group without an image action.
OrbitTable orbit_table(const Group& group, int size);

// Index tables (i64, rank 1) for gather(), which turn a lifting patch embedding with kernel = stride = patch
// into an EQ-Linear layer with one input channel per (colour, orbit): X_s = x(s·p0), W_r = w(r·p0)/|S|
// (docs/math.md).

/// Into [colours·height·width] images: [patches, colours, orbits, T], patches row-major.
Tensor patch_index(const Group& group, std::int64_t colours, std::int64_t image_size, std::int64_t patch);
/// Into [colours·patch·patch] filters: [colours, orbits, T].
Tensor filter_index(const Group& group, std::int64_t colours, std::int64_t patch);
/// 1/|S| for each element of filter_index, f64 [colours·orbits·T]; undefined where every orbit is full.
Tensor filter_scale(const Group& group, std::int64_t colours, std::int64_t patch);

// Position tables of a grid × grid square of patches (docs/math.md). The indices reach into rows of
// `channels` values, and give [prefix + grid·grid, channels, T]; `prefix` rows without a position come first
// and are repeated over t.

/// `full`: grid·grid rows Q, P_t = t·Q.
Tensor full_position_index(const Group& group, int grid, std::int64_t channels, int prefix);
/// `quarter`: one row per orbit of cells. Throws ValueError for an odd grid (but for c1).
Tensor quarter_position_index(const Group& group, int grid, std::int64_t channels, int prefix);
/// The cells that `quarter` stores, row-major: c1 all; c2 i < m; mirror j < m; c4 i, j < m; d4 i ≤ j < m,
/// where m = grid/2.
std::vector<Pixel> quarter_cells(const Group& group, int grid);

}  // namespace gyre
