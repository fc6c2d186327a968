#pragma once

#include <cstdint>
#include <vector>

#include "core/group.h"
#include "core/tensor.h"

namespace gyre {

/// The windows of one attention layer over a grid × grid square of tokens: window × window tokens each, moved
/// by `shift` tokens down and right, around the edges (Swin). They keep the symmetry of the square only if
/// shift is 0 or half of the window (docs/math.md).
struct WindowConfig {
  std::int64_t grid = 0;    ///< tokens along a side, a multiple of window
  std::int64_t window = 0;  ///< tokens along a side
  std::int64_t shift = 0;   ///< in [0, window)

  std::int64_t windows() const { return (grid / window) * (grid / window); }
  std::int64_t area() const { return window * window; }
  /// True if every element of the group maps windows to windows.
  bool exact(const Group& group) const { return group.order() == 1 || shift == 0 || 2 * shift == window; }
};
/// Throws ShapeError unless the fields fit together.
void require_windows(const WindowConfig& config);

/// Token of each place of each window, i64 [windows·area]: token (row, col) of window (i, j) is
/// ((i·window + row + shift) mod grid, (j·window + col + shift) mod grid).
Tensor window_order(const WindowConfig& config);
/// The inverse of a permutation of 0 … n-1.
Tensor inverse_order(const Tensor& order);
/// [windows, area, area] of 0 and -infinity: tokens that meet in a window only around an edge do not see each
/// other. Undefined without a shift.
Tensor window_mask(const WindowConfig& config, DType dtype);

/// Row of the relative position table [(2·window - 1)²] for each (query, key), i64 [area·area]: offset query
/// - key, (down + window - 1)·(2·window - 1) + right + window - 1.
Tensor relative_index(std::int64_t window);
/// Row of the table at g·offset, for every g and row: i64 [T·(2·window - 1)²]. A turn moves the offset (a, b)
/// to (-b, a), a mirror to (a, -b).
Tensor turned_offsets(const Group& group, std::int64_t window);

}  // namespace gyre
