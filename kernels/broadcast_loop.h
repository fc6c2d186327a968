#pragma once

#include <cstdint>

namespace gyre {
class Shape;
}

namespace gyre::kernels {

/// Dimensions of a dense result, outermost first, merged where both inputs step evenly; none of extent 1
/// but the only one. Plain data, which kernels take by value.
struct BroadcastLoop {
  int rank = 0;
  std::int64_t extent[8] = {}, a[8] = {}, b[8] = {};  ///< a, b: strides
};
BroadcastLoop merge_dimensions(const Shape& shape, const Shape& a, const Shape& b);

}  // namespace gyre::kernels
