#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace gyre {

/// Up to eight extents, outermost first; also used for strides (in elements).
class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);
  /// `rank` extents, all equal to `value`.
  static Shape filled(int rank, std::int64_t value);

  int rank() const { return rank_; }
  /// Product of the extents; 1 for rank 0.
  std::int64_t numel() const;
  /// Extent `dim`; negative counts from the end.
  std::int64_t operator[](int dim) const { return extents_[static_cast<std::size_t>(wrap(dim))]; }
  std::int64_t& operator[](int dim) { return extents_[static_cast<std::size_t>(wrap(dim))]; }
  const std::int64_t* begin() const { return extents_.data(); }
  const std::int64_t* end() const { return extents_.data() + rank_; }
  void push_back(std::int64_t extent);
  /// `dim` as a non-negative index; throws ShapeError if out of range.
  int wrap(int dim) const {
    const int index = dim < 0 ? dim + rank_ : dim;
    if (index < 0 || index >= rank_) [[unlikely]]
      throw_out_of_range(dim);
    return index;
  }
  /// Row-major strides of a dense tensor of this shape.
  Shape dense_strides() const;
  /// "[2, 3, 4]".
  std::string str() const;
  bool operator==(const Shape& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  [[noreturn]] void throw_out_of_range(int dim) const;

  std::array<std::int64_t, max_rank> extents_{};
  int rank_ = 0;
};

/// The common shape under right-aligned broadcasting; throws ShapeError naming both.
Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace gyre

/// As Shape::str, only made when an error text is.
template <>
struct fmt::formatter<gyre::Shape> : fmt::formatter<std::string_view> {
  auto format(const gyre::Shape& shape, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(shape.str(), context);
  }
};
