#include "layers/position.h"

#include "core/group_action.h"
#include "layers/equivariance.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::init_stream;
using testing::random;

struct Case {
  PositionKind kind;
  const char* group;
  int grid;
  bool token;
};

class EqPositionTables : public ::testing::TestWithParam<Case> {
 protected:
  const Group& group_ = Group::get(GetParam().group);
  const int grid_ = GetParam().grid;
  const int prefix_ = GetParam().token ? 1 : 0;
  RandomStream stream_ = init_stream();
  EqPositionTable layer_{GetParam().kind, group_, grid_, 3, GetParam().token, stream_};
  const Shape shape_{1, prefix_ + grid_* grid_, 3 * group_.order()};
};

TEST_P(EqPositionTables, IsInvariantAsAWhole) {
  layer_.to(DType::f64);
  const Tensor table = layer_(Variable(Tensor::zeros(shape_, DType::f64))).data();
  for (int g = 0; g < group_.order(); ++g) {
    const Tensor moved = act_on_tokens(group_, g, table, grid_, grid_, prefix_);
    EXPECT_EQ(moved.to_vector(), table.to_vector()) << g;
  }
  const Meaning tokens = Meaning::tokens(grid_, grid_, prefix_);
  Shape batch = shape_;
  batch[0] = 2;
  EXPECT_EQ(worst_nmae(check_equivariance(layer_, group_, random(batch), tokens, tokens)), 0);
}

TEST_P(EqPositionTables, GradientCountsUses) {
  const Variable y = layer_(Variable(Tensor::zeros(shape_)));
  y.backward(Tensor::ones(shape_));
  double uses = 0;
  for (const auto& [name, parameter] : layer_.parameters()) {
    EXPECT_FALSE(parameter->decay) << name;
    for (const double v : parameter->variable.grad().to_vector()) {
      EXPECT_GT(v, 0) << name;
      uses += v;
    }
  }
  EXPECT_EQ(uses, static_cast<double>(shape_.numel()));
}

constexpr PositionKind full = PositionKind::full, quarter = PositionKind::quarter;
INSTANTIATE_TEST_SUITE_P(Kinds, EqPositionTables,
                         ::testing::Values(Case{full, "c1", 3, true}, Case{full, "c2", 4, false},
                                           Case{full, "mirror", 3, true}, Case{full, "c4", 4, true},
                                           Case{full, "c4", 5, false}, Case{full, "d4", 4, true},
                                           Case{full, "d4", 3, false}, Case{quarter, "c1", 3, true},
                                           Case{quarter, "c2", 4, false}, Case{quarter, "mirror", 4, true},
                                           Case{quarter, "c4", 4, true}, Case{quarter, "c4", 6, false},
                                           Case{quarter, "d4", 4, true}, Case{quarter, "d4", 6, false}),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}_{}", test.param.kind == full ? "full" : "quarter",
                                              test.param.group, test.param.grid,
                                              test.param.token ? "token" : "plain");
                         });

TEST(EqPositionTable, FullTurnsTheTableForEveryOrientation) {
  RandomStream stream = init_stream();
  EqPositionTable layer(full, Group::get("c4"), 3, 1, false, stream);
  layer.to(DType::f64);
  std::vector<double> plane = layer.state().at("").to_vector();
  const Tensor table = layer(Variable(Tensor::zeros({1, 9, 4}, DType::f64))).data();
  for (int t = 0; t < 4; ++t) {
    for (int p = 0; p < 9; ++p)
      EXPECT_EQ(table.at({0, p, t}), plane[static_cast<std::size_t>(p)]) << t << " " << p;
    plane = testing::rotated(plane, 3);
  }
}

TEST(EqPositionTable, QuarterTurnsItsQuadrantClockwise) {
  RandomStream stream = init_stream();
  EqPositionTable layer(quarter, Group::get("c4"), 4, 1, false, stream);
  layer.to(DType::f64);
  const std::vector<double> q = layer.state().at("").to_vector();  // a b / c d
  ASSERT_EQ(q.size(), 4u);
  const Tensor table = layer(Variable(Tensor::zeros({1, 16, 4}, DType::f64))).data();
  // Clockwise from the top left: q, q by 90° (c a / d b), by 180° (d c / b a), by 270° (b d / a c).
  const std::vector<int> expected{0, 1, 2, 0,  //
                                  2, 3, 3, 1,  //
                                  1, 3, 3, 2,  //
                                  0, 2, 1, 0};
  for (int p = 0; p < 16; ++p)
    for (int t = 0; t < 4; ++t)
      EXPECT_EQ(table.at({0, p, t}), q[static_cast<std::size_t>(expected[static_cast<std::size_t>(p)])]) << p;
}

TEST(EqPositionTable, ClassTokenHasItsOwnEntry) {
  RandomStream stream = init_stream();
  EqPositionTable layer(full, Group::get("c4"), 2, 2, true, stream);
  const Tensor cls = layer.state().at("cls");
  const Tensor table = layer(Variable(Tensor::zeros({1, 5, 8}))).data();
  for (int c = 0; c < 2; ++c)
    for (int t = 0; t < 4; ++t) EXPECT_EQ(table.at({0, 0, c * 4 + t}), cls.at({c}));
}

TEST(PositionTable, AddsOneVectorPerToken) {
  RandomStream stream = init_stream();
  PositionTable layer(5, 8, stream);
  const Tensor table = layer.state().at("");
  ASSERT_EQ(table.shape(), (Shape{1, 5, 8}));
  EXPECT_FALSE(layer.parameters()[0].parameter->decay);
  const Tensor y = layer(Variable(Tensor::ones({3, 5, 8}))).data();
  for (int b = 0; b < 3; ++b)
    for (int p = 0; p < 5; ++p)
      for (int c = 0; c < 8; ++c)
        EXPECT_FLOAT_EQ(static_cast<float>(y.at({b, p, c})), 1 + static_cast<float>(table.at({0, p, c})));
}

TEST(PositionKind, Parses) {
  EXPECT_EQ(parse_position_kind("full"), full);
  EXPECT_EQ(parse_position_kind("quarter"), quarter);
  EXPECT_THAT(error_of<ValueError>([] { parse_position_kind("half"); }), HasSubstr("\"half\""));
}

}  // namespace
}  // namespace gyre
