#include "kernels/broadcast_loop.h"

#include "core/shape.h"

namespace gyre::kernels {

static_assert(Shape::max_rank == 8);

BroadcastLoop merge_dimensions(const Shape& shape, const Shape& a, const Shape& b) {
  BroadcastLoop loop;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    const std::int64_t extent = shape[dim];
    if (extent == 1) continue;
    const int last = loop.rank - 1;
    if (loop.rank > 0 && loop.a[last] == a[dim] * extent && loop.b[last] == b[dim] * extent) {
      loop.extent[last] *= extent;
      loop.a[last] = a[dim];
      loop.b[last] = b[dim];
    } else {
      const int next = loop.rank++;
      loop.extent[next] = extent;
      loop.a[next] = a[dim];
      loop.b[next] = b[dim];
    }
  }
  if (loop.rank == 0) loop.extent[loop.rank++] = 1;
  return loop;
}

}  // namespace gyre::kernels
