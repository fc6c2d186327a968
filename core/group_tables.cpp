#include <cstddef>
#include <numbers>

#include "core/bilinear.h"
#include "core/group_builder.h"

namespace gyre {

namespace {

// cos of `eighths` eighth turns, exact where the value is 0 or ±1.
double cos_of_eighths(int eighths) {
  constexpr double h = std::numbers::sqrt2 / 2;
  constexpr double values[] = {1, h, 0, -h, -1, -h, 0, h};
  return values[((eighths % 8) + 8) % 8];
}

double sin_of_eighths(int eighths) { return cos_of_eighths(eighths - 2); }

}  // namespace

void GroupBuilder::set_cyclic(Group& group, int order) {
  group.order_ = order;
  for (int a = 0; a < order; ++a) {
    group.inv_.push_back((order - a) % order);
    for (int b = 0; b < order; ++b) group.mul_.push_back((a + b) % order);
  }
  const int step = 8 / order;  // eighth turns per element: the orders are 1, 2, 4 and 8
  const auto is_real = [&](int slot) { return 2 * slot % order == 0; };
  group.fourier_ = Matrix(order, order);
  for (int slot = 0; slot < order; ++slot) {
    const bool imaginary = 2 * slot > order;
    const int k = imaginary ? order - slot : slot;
    for (int t = 0; t < order; ++t)
      group.fourier_(slot, t) = imaginary ? sin_of_eighths(-k * t * step) : cos_of_eighths(k * t * step);
    group.scale_.push_back((is_real(slot) ? 1.0 : 2.0) / order);
  }
  for (int slot = 0; 2 * slot <= order && slot < order; ++slot)
    if (is_real(slot)) group.blocks_.push_back({FourierBlock::Kind::real, {slot}});
  for (int slot = 1; 2 * slot < order; ++slot)
    group.blocks_.push_back({FourierBlock::Kind::complex, {slot, order - slot}});
}

void GroupBuilder::set_d4(Group& group) {
  group.order_ = 8;
  group.inv_ = {0, 3, 2, 1, 4, 5, 6, 7};
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 8; ++b) {
      const int turns = a % 4 + (a >= 4 ? 4 - b % 4 : b % 4);  // a mirror reverses the sense of later turns
      group.mul_.push_back(turns % 4 + 4 * (a / 4 ^ b / 4));
    }
  }
  // Rows A1 A2 B1 B2, then the 2×2 block E11 E12 E21 E22 = Σ_s x_s π(s)ᵀ.
  group.fourier_ = Matrix(8, 8);
  for (int s = 0; s < 8; ++s) {
    const double mirror = s < 4 ? 1 : -1;
    const double parity = s % 2 == 0 ? 1 : -1;
    const double c = cos_of_eighths(2 * (s % 4));
    const double d = sin_of_eighths(2 * (s % 4));
    const double column[] = {1, mirror, parity, mirror * parity, c, d, -mirror * d, mirror * c};
    for (int slot = 0; slot < 8; ++slot) group.fourier_(slot, s) = column[slot] + 0.0;  // no negative zeros
  }
  group.scale_ = {0.125, 0.125, 0.125, 0.125, 0.25, 0.25, 0.25, 0.25};
  for (int slot = 0; slot < 4; ++slot) group.blocks_.push_back({FourierBlock::Kind::real, {slot}});
  group.blocks_.push_back({FourierBlock::Kind::matrix, {4, 5, 6, 7}});
}

void GroupBuilder::set_forms(Group& group) {
  const auto form = [&](BlockProducts products) {
    return make_bilinear_form(group.fourier_, group.scale_, group.inv_, group.blocks_, products);
  };
  group.plain_ = form(BlockProducts::plain);
  group.fewest_ = form(BlockProducts::fewest);
}

Group GroupBuilder::build(std::string_view name) {
  Group group;
  group.name_ = name;
  if (name == "d4") {
    set_d4(group);
    group.image_elements_ = {0, 1, 2, 3, 4, 5, 6, 7};
  } else if (name == "c1") {
    set_cyclic(group, 1);
    group.image_elements_ = {0};
  } else if (name == "c2") {
    set_cyclic(group, 2);
    group.image_elements_ = {0, 2};
  } else if (name == "mirror") {
    set_cyclic(group, 2);
    group.image_elements_ = {0, 4};
  } else if (name == "c4") {
    set_cyclic(group, 4);
    group.image_elements_ = {0, 1, 2, 3};
  } else {
    set_cyclic(group, 8);
  }
  set_forms(group);
  return group;
}

}  // namespace gyre
