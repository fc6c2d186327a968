#include "core/shape.h"

#include <algorithm>

#include "core/error.h"

namespace gyre {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) {
  require<ShapeError>(extents.size() <= max_rank, "a shape has at most {} dimensions, not {}", max_rank,
                      extents.size());
  std::copy(extents.begin(), extents.end(), extents_.begin());
  rank_ = static_cast<int>(extents.size());
}

Shape Shape::filled(int rank, std::int64_t value) {
  require<ShapeError>(rank >= 0 && rank <= max_rank, "a shape has 0 to {} dimensions, not {}", max_rank,
                      rank);
  Shape result;
  result.rank_ = rank;
  std::fill_n(result.extents_.begin(), rank, value);
  return result;
}

std::int64_t Shape::numel() const {
  std::int64_t product = 1;
  bool overflow = false;
  for (const std::int64_t extent : *this) {
    if (extent == 0) return 0;
    overflow |= __builtin_mul_overflow(product, extent, &product);
  }
  require<ShapeError>(!overflow, "shape {} has more than 2^63 elements", *this);
  return product;
}

void Shape::push_back(std::int64_t extent) {
  require<ShapeError>(rank_ < max_rank, "a shape has at most {} dimensions", max_rank);
  extents_[static_cast<std::size_t>(rank_++)] = extent;
}

void Shape::throw_out_of_range(int dim) const {
  throw ShapeError(fmt::format("dimension {} is out of range for {}", dim, str()));
}

Shape Shape::dense_strides() const {
  Shape strides;
  strides.rank_ = rank_;
  std::int64_t stride = 1;
  for (int i = rank_ - 1; i >= 0; --i) {
    strides.extents_[static_cast<std::size_t>(i)] = stride;
    // An extent of 0 counts as 1, so that strides stay positive.
    stride *= std::max<std::int64_t>(1, extents_[static_cast<std::size_t>(i)]);
  }
  return strides;
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(begin(), end(), ", ")); }

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result = Shape::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t x = i <= a.rank() ? a[-i] : 1;
    const std::int64_t y = i <= b.rank() ? b[-i] : 1;
    require<ShapeError>(x == y || x == 1 || y == 1, "shapes {} and {} do not broadcast", a, b);
    result[-i] = x == 1 ? y : x;
  }
  return result;
}

}  // namespace gyre
