#include "core/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/random.h"

namespace gyre {
namespace {

using Values = std::vector<double>;
constexpr double h = std::numbers::sqrt2 / 2;

Values linear(const Matrix& m, const Values& x) {
  Values y(static_cast<std::size_t>(m.rows));
  for (int r = 0; r < m.rows; ++r)
    for (int c = 0; c < m.cols; ++c)
      y[static_cast<std::size_t>(r)] += m(r, c) * x[static_cast<std::size_t>(c)];
  return y;
}

Values times(const Values& a, const Values& b) {
  Values y(a.size());
  std::transform(a.begin(), a.end(), b.begin(), y.begin(), std::multiplies<>());
  return y;
}

double& at(Values& x, int i) { return x.at(static_cast<std::size_t>(i)); }
double at(const Values& x, int i) { return x.at(static_cast<std::size_t>(i)); }

// The definition, one multiplication per pair of elements.
Values product(const Group& group, const Values& x, const Values& w) {
  Values y(x.size());
  for (int t = 0; t < group.order(); ++t)
    for (int s = 0; s < group.order(); ++s) at(y, t) += at(x, s) * at(w, group.mul(group.inv(t), s));
  return y;
}

Values product_dx(const Group& group, const Values& dy, const Values& w) {
  Values dx(dy.size());
  for (int t = 0; t < group.order(); ++t)
    for (int s = 0; s < group.order(); ++s) at(dx, s) += at(dy, t) * at(w, group.mul(group.inv(t), s));
  return dx;
}

Values product_dw(const Group& group, const Values& dy, const Values& x) {
  Values dw(dy.size());
  for (int t = 0; t < group.order(); ++t)
    for (int s = 0; s < group.order(); ++s) at(dw, group.mul(group.inv(t), s)) += at(dy, t) * at(x, s);
  return dw;
}

Values form_y(const BilinearForm& form, const Values& x, const Values& w) {
  return linear(form.output, times(linear(form.input, x), linear(form.weight, w)));
}

Values form_dx(const BilinearForm& form, const Values& dy, const Values& w) {
  return linear(form.input.transposed(), times(linear(form.weight, w), linear(form.output.transposed(), dy)));
}

Values form_dw(const BilinearForm& form, const Values& dy, const Values& x) {
  return linear(form.weight.transposed(), times(linear(form.input, x), linear(form.output.transposed(), dy)));
}

void expect_close(const Values& actual, const Values& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance) << "at " << i;
}

Values integers(int count, RandomStream& stream) {
  Values x;
  for (int i = 0; i < count; ++i) x.push_back(static_cast<double>(stream.below(41)) - 20);
  return x;
}

Values unit(int count, int i) {
  Values e(static_cast<std::size_t>(count));
  at(e, i) = 1;
  return e;
}

// F(V) with V_r = W_{r⁻¹}.
Values planes(const Group& group, const Values& w) {
  Values v(w.size());
  for (int r = 0; r < group.order(); ++r) at(v, r) = at(w, group.inv(r));
  return linear(group.fourier(), v);
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "no error";
}

class EveryGroup : public testing::TestWithParam<std::string_view> {
 protected:
  const Group& group_ = Group::get(GetParam());
  const int order_ = group_.order();
  // Sums of products of small integers are exact where F is rational.
  const double tolerance_ = GetParam() == "c8" ? 1e-11 : 0;
};
INSTANTIATE_TEST_SUITE_P(Groups, EveryGroup, testing::ValuesIn(Group::names().begin(), Group::names().end()),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(EveryGroup, ObeysTheAxioms) {
  EXPECT_EQ(group_.name(), GetParam());
  for (int a = 0; a < order_; ++a) {
    EXPECT_EQ(group_.mul(0, a), a);
    EXPECT_EQ(group_.mul(a, 0), a);
    EXPECT_EQ(group_.mul(a, group_.inv(a)), 0);
    EXPECT_EQ(group_.mul(group_.inv(a), a), 0);
    for (int b = 0; b < order_; ++b)
      for (int c = 0; c < order_; ++c)
        EXPECT_EQ(group_.mul(group_.mul(a, b), c), group_.mul(a, group_.mul(b, c)));
  }
}

TEST_P(EveryGroup, ImageElementsFormASubgroupOfD4) {
  if (!group_.has_image_action()) {
    EXPECT_EQ(GetParam(), "c8");
    EXPECT_EQ(error_of([&] { group_.image_element(0); }), "c8 has no exact image action");
    EXPECT_FALSE(group_.swaps_axes());
    return;
  }
  const Group& d4 = Group::get("d4");
  bool swaps = false;
  for (int a = 0; a < order_; ++a) {
    swaps = swaps || group_.image_element(a) % 2 == 1;
    for (int b = 0; b < order_; ++b)
      EXPECT_EQ(d4.mul(group_.image_element(a), group_.image_element(b)),
                group_.image_element(group_.mul(a, b)));
  }
  EXPECT_EQ(group_.swaps_axes(), swaps);
  EXPECT_EQ(error_of([&] { group_.image_element(order_); }),
            fmt::format("{0} has no element {1}: elements are 0 to {2}", GetParam(), order_, order_ - 1));
  EXPECT_THROW(group_.image_element(-1), ValueError);
}

TEST_P(EveryGroup, FourierInverseIsTheScaledTranspose) {
  const Matrix& f = group_.fourier();
  ASSERT_EQ(f.rows, order_);
  ASSERT_EQ(f.cols, order_);
  Matrix scaled = f;
  for (int slot = 0; slot < order_; ++slot)
    for (int t = 0; t < order_; ++t) scaled(slot, t) *= group_.scale()[static_cast<std::size_t>(slot)];
  const Matrix identity = scaled.transposed() * f;
  for (int a = 0; a < order_; ++a)
    for (int b = 0; b < order_; ++b) EXPECT_NEAR(identity(a, b), a == b, tolerance_ > 0 ? 1e-15 : 0);
}

TEST_P(EveryGroup, Parseval) {
  RandomStream stream(1, Purpose::test);
  const Values x = integers(order_, stream), f = linear(group_.fourier(), x);
  double direct = 0, transformed = 0;
  for (int i = 0; i < order_; ++i) {
    direct += at(x, i) * at(x, i);
    transformed += group_.scale()[static_cast<std::size_t>(i)] * at(f, i) * at(f, i);
  }
  EXPECT_GT(direct, 0);
  EXPECT_NEAR(transformed, direct, tolerance_);
}

TEST_P(EveryGroup, BlocksCoverEverySlotOnce) {
  std::vector<int> slots;
  for (const FourierBlock& block : group_.blocks()) {
    const std::size_t size = block.kind == FourierBlock::Kind::real      ? 1
                             : block.kind == FourierBlock::Kind::complex ? 2
                                                                         : 4;
    EXPECT_EQ(block.slots.size(), size);
    slots.insert(slots.end(), block.slots.begin(), block.slots.end());
  }
  std::sort(slots.begin(), slots.end());
  ASSERT_EQ(slots.size(), static_cast<std::size_t>(order_));
  for (int i = 0; i < order_; ++i) EXPECT_EQ(slots[static_cast<std::size_t>(i)], i);
  // The fewest products meet the lower bound for a semisimple algebra.
  EXPECT_EQ(group_.fewest_form().products(), 2 * order_ - static_cast<int>(group_.blocks().size()));
}

TEST_P(EveryGroup, BothFormsComputeTheProductOfEveryPairOfElements) {
  for (const BilinearForm* form : {&group_.plain_form(), &group_.fewest_form()}) {
    ASSERT_EQ(form->input.cols, order_);
    ASSERT_EQ(form->weight.rows, form->products());
    ASSERT_EQ(form->output.cols, form->products());
    for (int a = 0; a < order_; ++a)
      for (int b = 0; b < order_; ++b)
        expect_close(form_y(*form, unit(order_, a), unit(order_, b)),
                     product(group_, unit(order_, a), unit(order_, b)), tolerance_ > 0 ? 1e-15 : 0);
  }
}

TEST_P(EveryGroup, BothFormsAndTheirTransposesMatchTheDefinition) {
  RandomStream stream(2, Purpose::test);
  for (int round = 0; round < 20; ++round) {
    const Values x = integers(order_, stream), w = integers(order_, stream), dy = integers(order_, stream);
    for (const BilinearForm* form : {&group_.plain_form(), &group_.fewest_form()}) {
      expect_close(form_y(*form, x, w), product(group_, x, w), tolerance_);
      expect_close(form_dx(*form, dy, w), product_dx(group_, dy, w), tolerance_);
      expect_close(form_dw(*form, dy, x), product_dw(group_, dy, x), tolerance_);
    }
  }
}

TEST_P(EveryGroup, ProductIsEquivariantInTheIndex) {
  RandomStream stream(3, Purpose::test);
  const Values x = integers(order_, stream), w = integers(order_, stream);
  const auto act = [&](int g, const Values& v) {
    Values moved(v.size());
    for (int t = 0; t < order_; ++t) at(moved, t) = at(v, group_.mul(group_.inv(g), t));
    return moved;
  };
  const Values y = form_y(group_.fewest_form(), x, w);
  for (int g = 0; g < order_; ++g)
    expect_close(form_y(group_.fewest_form(), act(g, x), w), act(g, y), tolerance_);
}

TEST(Group, CountsProducts) {
  const auto products = [](std::string_view name) {
    const Group& group = Group::get(name);
    return std::pair(group.plain_form().products(), group.fewest_form().products());
  };
  EXPECT_EQ(products("c1"), std::pair(1, 1));
  EXPECT_EQ(products("c2"), std::pair(2, 2));
  EXPECT_EQ(products("mirror"), std::pair(2, 2));
  EXPECT_EQ(products("c4"), std::pair(6, 5));
  EXPECT_EQ(products("c8"), std::pair(14, 11));
  EXPECT_EQ(products("d4"), std::pair(12, 11));
}

TEST(Group, RefusesUnknownNames) {
  EXPECT_EQ(error_of([] { Group::get("p4"); }), "unknown group \"p4\": legal are c1, c2, mirror, c4, c8, d4");
  EXPECT_EQ(&Group::get("c4"), &Group::get("c4"));
}

TEST(Group, MatrixProductRefusesOtherSizes) {
  EXPECT_THROW(Matrix(2, 3) * Matrix(2, 3), ShapeError);
  const Matrix product = Matrix(2, 3) * Matrix(3, 4);
  EXPECT_EQ(product.rows, 2);
  EXPECT_EQ(product.cols, 4);
}

TEST(Group, D4Table) {
  const int table[8][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 0, 5, 6, 7, 4}, {2, 3, 0, 1, 6, 7, 4, 5},
                           {3, 0, 1, 2, 7, 4, 5, 6}, {4, 7, 6, 5, 0, 3, 2, 1}, {5, 4, 7, 6, 1, 0, 3, 2},
                           {6, 5, 4, 7, 2, 1, 0, 3}, {7, 6, 5, 4, 3, 2, 1, 0}};
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b) EXPECT_EQ(Group::get("d4").mul(a, b), table[a][b]) << a << " " << b;
}

TEST(Group, D4FourierRows) {
  const std::string_view rows[8] = {"++++++++", "++++----", "+-+-+-+-", "+-+--+-+",
                                    "+0-0+0-0", "0+0-0+0-", "0-0+0+0-", "+0-0-0+0"};
  for (int r = 0; r < 8; ++r) {
    for (int t = 0; t < 8; ++t) {
      const char sign = rows[r][static_cast<std::size_t>(t)];
      EXPECT_EQ(Group::get("d4").fourier()(r, t), sign == '+' ? 1 : sign == '-' ? -1 : 0);
    }
  }
}

TEST(Group, C4FormsAreThePublishedOnes) {
  const Group& c4 = Group::get("c4");
  const Values x = {5, 6, 7, 8}, w = {1, 2, 3, 4};
  EXPECT_EQ(linear(c4.fourier(), x), (Values{26, -2, -2, 2}));
  EXPECT_EQ(planes(c4, w), (Values{10, -2, -2, -2}));
  EXPECT_EQ(product(c4, x, w), (Values{70, 64, 62, 64}));

  const BilinearForm& five = c4.fewest_form();
  const double f0 = 26, f1 = -2, f2 = -2, f3 = 2, w0 = 10, w1 = -2, w2 = -2, w3 = -2;
  EXPECT_EQ(linear(five.input, x), (Values{f0, f2, f1 + f3, f1, f3}));
  EXPECT_EQ(linear(five.weight, w), (Values{w0 / 4, w2 / 4, w1 / 2, (w3 - w1) / 2, (w1 + w3) / 2}));
  const double a0 = f0 * w0 / 4, a2 = f2 * w2 / 4;
  const double a1 = (f1 * w1 - f3 * w3) / 2, a3 = (f1 * w3 + f3 * w1) / 2;
  EXPECT_EQ(form_y(five, x, w), (Values{a0 + a1 + a2, a0 - a2 - a3, a0 - a1 + a2, a0 - a2 + a3}));
  EXPECT_EQ(form_y(five, x, w), (Values{70, 64, 62, 64}));

  const BilinearForm& six = c4.plain_form();
  EXPECT_EQ(linear(six.input, x), (Values{f0, f2, f1, f3, f1, f3}));
  EXPECT_EQ(linear(six.weight, w), (Values{w0 / 4, w2 / 4, w1 / 2, w3 / 2, w3 / 2, w1 / 2}));
  for (const BilinearForm* form : {&five, &six})
    for (const double value : form->output.values) EXPECT_TRUE(value == 0 || value == 1 || value == -1);
}

// X = e1 + 10 e4 and dY = e3 + 10 e6 tell every index convention apart.
struct Example {
  std::string_view group;
  Values y, f, w, a, dx, dw, mirrored_index, reversed_order;
};

class HandExample : public testing::TestWithParam<Example> {};
INSTANTIATE_TEST_SUITE_P(Groups, HandExample,
                         testing::Values(Example{"d4",
                                                 {37, 42, 98, 61, 24, 73, 16, 89},
                                                 {11, -9, 9, -11, 10, 1, -1, -10},
                                                 {40, -4, -10, -14, -5, 3, 1, 7},
                                                 {440, 36, -90, 154, -53, -35, 3, -69},
                                                 {97, 61, 38, 42, 16, 79, 24, 83},
                                                 {0, 0, 101, 0, 0, 20, 0, 0},
                                                 {38, 42, 97, 61, 24, 83, 16, 79},
                                                 {37, 62, 98, 41, 26, 89, 14, 73}},
                                         Example{
                                             "c8",
                                             {37, 82, 14, 79, 26, 43, 98, 61},
                                             {11, h - 10, 10, -h - 10, 9, -h, -1, -h},
                                             {40, -1 - 3 * h, -5, -1 + 3 * h, -10, 5 * h + 8, 1, 5 * h - 8},
                                             {440, 25.8492, -49, -3.8492, -90, -124.3051, 15, 43.6949},
                                             {16, 89, 34, 62, 97, 41, 28, 73},
                                             {0, 10, 0, 10, 0, 0, 101, 0},
                                             {34, 62, 97, 41, 28, 73, 16, 89},
                                             {37, 82, 14, 79, 26, 43, 98, 61}}),
                         [](const auto& test) { return std::string(test.param.group); });

TEST_P(HandExample, ForwardAndBackward) {
  const Example& example = GetParam();
  const Group& group = Group::get(example.group);
  const Values x = {0, 1, 0, 0, 10, 0, 0, 0}, w = {2, 7, 1, 8, 3, 6, 9, 4}, dy = {0, 0, 0, 1, 0, 0, 10, 0};
  expect_close(linear(group.fourier(), x), example.f, 1e-12);
  expect_close(planes(group, w), example.w, 1e-12);
  expect_close(linear(group.fourier(), example.y), example.a, 1e-4);
  for (const BilinearForm* form : {&group.plain_form(), &group.fewest_form()}) {
    expect_close(form_y(*form, x, w), example.y, 1e-12);
    expect_close(form_dx(*form, dy, w), example.dx, 1e-12);
    expect_close(form_dw(*form, dy, x), example.dw, 1e-12);
  }
}

TEST_P(HandExample, TellsOtherIndexConventionsApart) {
  const Example& example = GetParam();
  const Group& group = Group::get(example.group);
  const Values x = {0, 1, 0, 0, 10, 0, 0, 0}, w = {2, 7, 1, 8, 3, 6, 9, 4};
  Values mirrored(8), reversed(8);
  for (int t = 0; t < 8; ++t) {
    for (int s = 0; s < 8; ++s) {
      at(mirrored, t) += at(x, s) * at(w, group.mul(group.inv(s), t));
      at(reversed, t) += at(x, s) * at(w, group.mul(s, group.inv(t)));
    }
  }
  EXPECT_EQ(mirrored, example.mirrored_index);
  EXPECT_EQ(reversed, example.reversed_order);
  EXPECT_NE(mirrored, example.y);
}

}  // namespace
}  // namespace gyre
