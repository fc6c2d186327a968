#include "core/group.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/error.h"
#include "core/group_builder.h"

namespace gyre {

namespace {

constexpr std::array<std::string_view, 6> group_names = {"c1", "c2", "mirror", "c4", "c8", "d4"};

}  // namespace

Matrix Matrix::transposed() const {
  Matrix result(cols, rows);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) result(c, r) = (*this)(r, c);
  return result;
}

Matrix operator*(const Matrix& a, const Matrix& b) {
  require<ShapeError>(a.cols == b.rows, "matrix product of {}x{} and {}x{}", a.rows, a.cols, b.rows, b.cols);
  Matrix result(a.rows, b.cols);
  for (int r = 0; r < a.rows; ++r)
    for (int k = 0; k < a.cols; ++k)
      for (int c = 0; c < b.cols; ++c) result(r, c) += a(r, k) * b(k, c);
  return result;
}

std::span<const std::string_view> Group::names() { return group_names; }

const Group& Group::get(std::string_view name) {
  static const std::vector<Group> groups = [] {
    std::vector<Group> all;
    for (const std::string_view each : group_names) all.push_back(GroupBuilder::build(each));
    return all;
  }();
  const auto found = std::find(group_names.begin(), group_names.end(), name);
  require<ValueError>(found != group_names.end(), "unknown group \"{}\": legal are {}", name,
                      fmt::join(group_names, ", "));
  return groups[static_cast<std::size_t>(found - group_names.begin())];
}

int Group::image_element(int t) const {
  require<ValueError>(has_image_action(), "{} has no exact image action", name_);
  require<ValueError>(t >= 0 && t < order_, "{} has no element {}: elements are 0 to {}", name_, t,
                      order_ - 1);
  return image_elements_[static_cast<std::size_t>(t)];
}

bool Group::swaps_axes() const {
  return std::any_of(image_elements_.begin(), image_elements_.end(),
                     [](int element) { return element % 2 == 1; });
}

}  // namespace gyre
