#include "layers/window_attention.h"

#include "autograd/gradcheck.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/shape.h"
#include "layers/equivariance.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::init_stream;
using testing::random;
using testing::rel_l2;

LayerFamily family_of(const char* group) { return {&Group::get(group), {}}; }

Variable& table_of(WindowAttention& layer) { return layer.parameters().front().parameter->variable; }

/// A table whose places differ widely, so that a wrong place shows.
void fill_table(WindowAttention& layer, DType dtype = DType::f64) {
  layer.to(dtype);
  Variable& table = table_of(layer);
  table.set_data(random(table.shape(), 7, dtype));
}

TEST(WindowAttention, MatchesAttentionWindowByWindow) {
  for (const std::int64_t shift : {0, 1, 2}) {
    RandomStream stream = init_stream();
    const std::int64_t grid = 8, window = 4, heads = 3, width = 24;
    WindowAttention layer({}, width, heads, {grid, window, shift}, stream);
    fill_table(layer);
    Module* qkv = nullptr;
    Module* proj = nullptr;
    for (const auto& [name, module] : layer.modules()) {
      if (name == "qkv") qkv = module;
      if (name == "proj") proj = module;
    }
    ASSERT_TRUE(qkv && proj);
    const Tensor x = random({2, grid * grid, width}, 1), y = layer(Variable(x)).data();
    const Tensor projected = (*qkv)(Variable(x)).data(), table = table_of(layer).data();
    // Token by token: the softmax over the tokens of its window that are near on the grid itself.
    std::vector<double> mixed;
    const auto window_of = [&](std::int64_t place) { return (place + grid - shift) % grid / window; };
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t i = 0; i < grid * grid; ++i)
        for (std::int64_t h = 0; h < heads; ++h) {
          std::vector<std::pair<double, std::int64_t>> seen;
          double sum = 0;
          for (std::int64_t j = 0; j < grid * grid; ++j) {
            const std::int64_t down = i / grid - j / grid, right = i % grid - j % grid;
            if (window_of(i / grid) != window_of(j / grid) || window_of(i % grid) != window_of(j % grid) ||
                std::abs(down) >= window || std::abs(right) >= window)
              continue;
            double score = table.at({(down + window - 1) * (2 * window - 1) + right + window - 1, h});
            for (std::int64_t e = 0; e < 8; ++e)
              score +=
                  projected.at({b, i, h * 8 + e}) * projected.at({b, j, width + h * 8 + e}) / std::sqrt(8.0);
            seen.emplace_back(std::exp(score), j);
            sum += seen.back().first;
          }
          for (std::int64_t e = 0; e < 8; ++e) {
            double value = 0;
            for (const auto& [weight, j] : seen)
              value += weight / sum * projected.at({b, j, 2 * width + h * 8 + e});
            mixed.push_back(value);
          }
        }
    const Variable expected = (*proj)(Variable(Tensor::from(mixed, x.shape())));
    EXPECT_LT(rel_l2(y, expected.data()), 1e-12) << shift;
  }
}

class WindowGroups : public ::testing::TestWithParam<const char*> {
 protected:
  const Group& group_ = Group::get(GetParam());
  const std::int64_t width_ = 6 * group_.order();
  RandomStream stream_ = init_stream();

  std::vector<EquivarianceError> errors(const WindowConfig& windows) {
    WindowAttention layer(family_of(GetParam()), width_, 3, windows, stream_);
    EXPECT_EQ(layer.kind(), "EqWindowAttention");
    fill_table(layer);
    const int grid = static_cast<int>(windows.grid);
    const Meaning tokens = Meaning::tokens(grid, grid);
    return check_equivariance(layer, group_, random({2, grid * grid, width_}, 1), tokens, tokens);
  }
};

TEST_P(WindowGroups, ExactWindowsAreEquivariant) {
  for (const WindowConfig& windows :
       {WindowConfig{6, 3, 0}, WindowConfig{4, 2, 1}, WindowConfig{8, 4, 2}, WindowConfig{5, 5, 0}})
    EXPECT_LT(worst_nmae(errors(windows)), 1e-12) << windows.grid << " " << windows.shift;
}

TEST_P(WindowGroups, OtherWindowsAreNot) {
  if (group_.order() == 1) {
    EXPECT_LT(worst_nmae(errors({6, 3, 1})), 1e-12);
    return;
  }
  const auto all = errors({6, 3, 1});
  EXPECT_LT(all[0].nmae, 1e-12);
  for (std::size_t g = 1; g < all.size(); ++g) {
    // Only the transpose maps windows moved alike in both directions to themselves.
    if (group_.image_element(static_cast<int>(g)) == 5)
      EXPECT_LT(all[g].nmae, 1e-12);
    else
      EXPECT_GT(all[g].nmae, 1e-3) << g;
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, WindowGroups, ::testing::Values("c1", "c2", "mirror", "c4", "d4"),
                         [](const auto& test) { return std::string(test.param); });

TEST(WindowAttention, BiasIsTheAverageOverTheGroup) {
  // With q = k = 0 the weights are the softmax of the bias alone: the layer reads v through it. A table and
  // each of its turns give the same layer, a table that is changed otherwise does not.
  for (const char* name : {"c4", "d4"}) {
    const Group& group = Group::get(name);
    RandomStream stream = init_stream();
    WindowAttention layer(family_of(name), 2 * group.order(), 2, {3, 3, 0}, stream);
    fill_table(layer);
    Variable& table = table_of(layer);
    const Tensor own = table.data().clone(), x = random({1, 9, 2 * group.order()}, 1);
    const Tensor y = layer(Variable(x)).data();
    const Tensor turned = turned_offsets(group, 3).reshape({group.order(), 25});
    for (int g = 1; g < group.order(); ++g) {
      Tensor moved = own.clone();
      for (std::int64_t p = 0; p < 25; ++p)
        moved.select(0, static_cast<std::int64_t>(turned.at({g, p}))).copy_(own.select(0, p));
      table.set_data(moved);
      EXPECT_LT(rel_l2(layer(Variable(x)).data(), y), 1e-13) << name << " " << g;
    }
    Tensor other = own.clone();
    other.select(0, 1).fill_(5);
    table.set_data(other);
    EXPECT_GT(rel_l2(layer(Variable(x)).data(), y), 1e-3) << name;
  }
}

TEST(WindowAttention, BiasFollowsEveryChangeOfTheTable) {
  RandomStream stream = init_stream();
  WindowAttention layer({}, 8, 2, {2, 2, 0}, stream);
  fill_table(layer);
  const Variable x(random({1, 4, 8}, 1));
  const Tensor before = layer(x).data();
  Tensor table = table_of(layer).data();
  table.mutable_data<double>()[0] += 1;  // in place
  EXPECT_GT(rel_l2(layer(x).data(), before), 1e-4);
}

TEST(WindowAttention, Gradients) {
  for (const char* group : {"", "c4", "d4"}) {
    const LayerFamily family = *group ? family_of(group) : LayerFamily{};
    RandomStream stream = init_stream();
    WindowAttention layer(family, 8, 1, {4, 2, 1}, stream);
    fill_table(layer);
    const auto f = [&](std::vector<Variable>& in) { return layer(in[0]); };
    const GradcheckResult result = gradcheck(f, {random({1, 16, 8}, 1)});
    EXPECT_TRUE(result.pass) << group << " " << result.where;
    // The gradient of the table is the slope along each of its entries.
    Variable& table = table_of(layer);
    const Tensor x = random({2, 16, 8}, 1), direction = random({2, 16, 8}, 2), own = table.data().clone();
    table.zero_grad();
    layer(Variable(x)).backward(direction);
    const Tensor gradient = table.grad().clone();
    const auto loss = [&](std::int64_t i, double step) {
      Tensor moved = own.clone();
      moved.mutable_data<double>()[i] += step;
      table.set_data(moved);
      return testing::dot(layer(Variable(x)).data(), direction);
    };
    for (std::int64_t i = 0; i < own.numel(); ++i)
      EXPECT_NEAR(gradient.contiguous().data<double>()[i], (loss(i, 1e-5) - loss(i, -1e-5)) / 2e-5, 1e-7)
          << group << " " << i;
  }
}

TEST(WindowAttention, ErrorsAndWords) {
  RandomStream stream = init_stream();
  WindowAttention layer({}, 24, 3, {8, 4, 2}, stream);
  EXPECT_EQ(layer.describe(), "3 heads of 8, window 4, shift 2");
  EXPECT_FALSE(layer.parameters().front().parameter->decay);
  EXPECT_THAT(error_of<ShapeError>([&] {
                layer(Variable(Tensor::ones({1, 63, 24})));
              }),
              HasSubstr("WindowAttention takes [batch, 64, 24], not [1, 63, 24]"));
  EXPECT_THAT(error_of<ShapeError>([&] {
                WindowAttention(family_of("c4"), 24, 4, {8, 4, 2}, stream);
              }),
              HasSubstr("does not split into 4 heads of whole orbits of 4"));
}

}  // namespace
}  // namespace gyre
