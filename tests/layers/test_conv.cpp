#include "layers/conv.h"

#include "core/group_action.h"
#include "layers/equivariance.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::init_stream;
using testing::random;
using testing::rel_l2;

/// x [B, size², C·T] convolved with w [D, C, T, k, k] by Y_t = Σ_a conv(x_a, t·w_{t⁻¹a}) + b, written out.
Tensor direct(const Group& group, const ConvConfig& config, const Tensor& x, const Tensor& w,
              const Tensor& bias) {
  const int order = group.order(), k = static_cast<int>(config.kernel);
  const std::int64_t size = config.size, out = config.out_size();
  std::vector<double> y;
  for (std::int64_t b = 0; b < x.size(0); ++b)
    for (std::int64_t place = 0; place < out * out; ++place)
      for (std::int64_t d = 0; d < w.size(0); ++d)
        for (int t = 0; t < order; ++t) {
          double sum = bias.at({d});
          for (std::int64_t c = 0; c < w.size(1); ++c)
            for (int a = 0; a < order; ++a) {
              const Tensor filter = act_on_image(
                  group, t, w.select(0, d).select(0, c).select(0, group.mul(group.inv(t), a)).contiguous());
              for (int i = 0; i < k * k; ++i) {
                const std::int64_t row = place / out * config.stride - config.padding + i / k;
                const std::int64_t col = place % out * config.stride - config.padding + i % k;
                if (row < 0 || row >= size || col < 0 || col >= size) continue;
                sum += filter.at({i / k, i % k}) * x.at({b, row * size + col, c * order + a});
              }
            }
          y.push_back(sum);
        }
  return Tensor::from(y, {x.size(0), out * out, w.size(0) * order});
}

/// The EQ-Linear weight [D, C·k², T] of a filter [D, C, T, k, k]: W_{(c,q),r} = w_{c,r}(r·q).
Tensor weight_of(const Group& group, const Tensor& w) {
  const int k = static_cast<int>(w.size(4));
  std::vector<double> values;
  for (std::int64_t d = 0; d < w.size(0); ++d)
    for (std::int64_t c = 0; c < w.size(1); ++c)
      for (int q = 0; q < k * k; ++q)
        for (int r = 0; r < group.order(); ++r) {
          const Pixel p = act_on_pixel(group, r, {q / k, q % k}, k, k);
          values.push_back(w.at({d, c, r, p.row, p.col}));
        }
  return Tensor::from(values, {w.size(0), w.size(1) * k * k, group.order()});
}

struct Case {
  const char* group;
  ConvConfig config;
};

class EqConvGroups : public ::testing::TestWithParam<Case> {
 protected:
  const Group& group_ = Group::get(GetParam().group);
  const ConvConfig config_ = GetParam().config;
  RandomStream stream_ = init_stream();
  EqConv layer_{group_, config_, 2, 3, true, stream_};
  Tensor x_ = random({2, config_.size* config_.size, 2 * group_.order()}, 1);
};

TEST_P(EqConvGroups, AppliesTheTurnedFilters) {
  layer_.to(DType::f64);
  const Tensor w = random({3, 2, group_.order(), config_.kernel, config_.kernel}, 2), bias = random({3}, 3);
  layer_.load_state({{"weight", weight_of(group_, w)}, {"bias", bias}});
  EXPECT_LT(rel_l2(layer_(Variable(x_)).data(), direct(group_, config_, x_, w, bias)), 1e-13);
}

TEST_P(EqConvGroups, IsEquivariant) {
  const int size = static_cast<int>(config_.size), out = static_cast<int>(config_.out_size());
  const Meaning from = Meaning::tokens(size, size), to = Meaning::tokens(out, out);
  EXPECT_LT(worst_nmae(check_equivariance(layer_, group_, x_.to(DType::f32), from, to)), 1e-5);
  layer_.to(DType::f64);
  EXPECT_LT(worst_nmae(check_equivariance(layer_, group_, x_, from, to)), 1e-12);
}

TEST_P(EqConvGroups, GradientsAreExact) {
  layer_.to(DType::f64);
  const Variable x(x_.clone(), true), y = layer_(x);
  const Tensor grad = random(y.shape(), 2), before = y.data().clone();
  y.backward(grad);
  // Linear in x and in the weight, so a finite step is exact up to rounding.
  Variable& weight = layer_.parameters()[0].parameter->variable;
  for (const auto& [variable, gradient] : {std::pair{weight, weight.grad()}, {x, x.grad()}}) {
    Tensor data = variable.data();
    for (std::int64_t i = 0; i < data.numel(); i += 5) {
      data.mutable_data<double>()[i] += 1;
      const NoGrad no_grad;
      const Tensor after = layer_(Variable(x.data())).data();
      data.mutable_data<double>()[i] -= 1;
      EXPECT_NEAR(gradient.contiguous().data<double>()[i],
                  testing::dot(after, grad) - testing::dot(before, grad), 1e-10);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, EqConvGroups,
    ::testing::Values(Case{"c1", {4, 3, 1, 1}}, Case{"c2", {5, 3, 2, 1}}, Case{"mirror", {4, 2, 2, 0}},
                      Case{"c4", {4, 1, 1, 0}}, Case{"c4", {4, 3, 1, 1}}, Case{"c4", {5, 3, 2, 1}},
                      Case{"c4", {6, 2, 2, 0}}, Case{"c4", {4, 4, 1, 2}}, Case{"c4", {3, 5, 1, 2}},
                      Case{"d4", {4, 3, 1, 1}}, Case{"d4", {4, 2, 2, 0}}, Case{"d4", {7, 5, 2, 2}}),
    [](const auto& test) {
      const ConvConfig& c = test.param.config;
      return fmt::format("{}_{}_k{}_s{}_p{}", test.param.group, c.size, c.kernel, c.stride, c.padding);
    });

TEST(EqConv, RefusesWhatIsNotExact) {
  RandomStream stream = init_stream();
  const auto refusal = [&](const char* group, const ConvConfig& config) {
    return error_of([&] { EqConv(Group::get(group), config, 1, 1, true, stream); });
  };
  EXPECT_THAT(
      refusal("c4", {6, 3, 2, 1}),
      HasSubstr("kernel 3 with stride 2 and padding 1 leaves 1 of 6 tokens over at the far edge, which "
                "breaks the symmetry; nearest sizes 5 and 7"));
  EXPECT_THAT(refusal("c4", {3, 6, 1, 1}), HasSubstr("kernel 6 is larger than 3 tokens with padding 1"));
  EXPECT_THAT(refusal("c4", {3, 0, 1, 1}), HasSubstr("kernel 0"));
  EXPECT_THAT(refusal("c4", {3, 3, 0, 1}), HasSubstr("stride 0"));
  EXPECT_THAT(refusal("c8", {4, 3, 1, 1}), HasSubstr("c8 has no exact image action"));
  EqConv layer(Group::get("c4"), {4, 3, 1, 1}, 2, 3, false, stream);
  EXPECT_EQ(layer.parameters().size(), 1u);
  EXPECT_THAT(error_of<ShapeError>([&] {
                layer(Variable(Tensor::ones({1, 15, 8})));
              }),
              HasSubstr("EqConv takes [batch, 16, 8], not [1, 15, 8]"));
  EXPECT_EQ(layer.describe(), "2 to 3 per element, c4, 4x4, kernel 3, stride 1, padding 1");
}

TEST(PatchMerging, OrdinaryOneReadsFourTokensSideBySide) {
  RandomStream stream = init_stream();
  PatchMerging layer({}, 4, 3, stream);
  layer.to(DType::f64);
  const Tensor x = random({2, 16, 3}, 1), y = layer(Variable(x)).data();
  ASSERT_EQ(y.shape(), (Shape{2, 4, 6}));
  const Tensor w = layer.state().at("reduction.weight");
  ASSERT_EQ(layer.state().size(), 3u);  // the reduction has no bias
  for (std::int64_t place = 0; place < 4; ++place) {
    // Columns of pixels: top left, bottom left, top right, bottom right; then the norm over all.
    std::vector<double> values;
    for (const auto& [row, col] : {std::pair{0, 0}, {1, 0}, {0, 1}, {1, 1}})
      for (std::int64_t c = 0; c < 3; ++c)
        values.push_back(x.at({1, (place / 2 * 2 + row) * 4 + place % 2 * 2 + col, c}));
    double mean = 0, variance = 0;
    for (const double v : values) mean += v / 12;
    for (const double v : values) variance += (v - mean) * (v - mean) / 12;
    for (std::int64_t d = 0; d < 6; ++d) {
      double sum = 0;
      for (std::int64_t i = 0; i < 12; ++i)
        sum += w.at({d, i}) * (values[static_cast<std::size_t>(i)] - mean) / std::sqrt(variance + 1e-6);
      EXPECT_NEAR(y.at({1, place, d}), sum, 1e-12);
    }
  }
}

TEST(PatchMerging, EquivariantOneIsTheConvolutionBeforeItsNorm) {
  for (const char* name : {"c2", "mirror", "c4", "d4"}) {
    const Group& group = Group::get(name);
    const int order = group.order();
    RandomStream stream = init_stream();
    PatchMerging layer({&group, {}}, 4, 2 * order, stream);
    layer.to(DType::f64);
    const Tensor x = random({2, 16, 2 * order}, 1);
    EXPECT_LT(worst_nmae(check_equivariance(layer, group, x, Meaning::tokens(4, 4), Meaning::tokens(2, 2))),
              1e-12)
        << name;
    // Channel c·4 + d holds pixel d of (0,0) (0,1) (1,1) (1,0); EqConv counts them row by row.
    const TensorMap state = layer.state();
    EqConv conv(group, {4, 2, 2, 0}, 2, 4, true, stream);
    conv.to(DType::f64);
    Tensor weight = conv.state().at("weight");
    for (std::int64_t c = 0; c < 2; ++c)
      for (const auto& [own, row_major] : {std::pair{0, 0}, {1, 1}, {2, 3}, {3, 2}})
        weight.select(1, c * 4 + row_major).copy_(state.at("reduction.weight").select(1, c * 4 + own));
    conv.load_state({{"weight", weight}, {"bias", state.at("reduction.bias")}});
    Module* norm = layer.modules()[1].module;
    EXPECT_LT(rel_l2(layer(Variable(x)).data(), (*norm)(conv(Variable(x))).data()), 1e-13) << name;
  }
}

TEST(PatchMerging, ErrorsAndWords) {
  RandomStream stream = init_stream();
  EXPECT_THAT(error_of<ShapeError>([&] { PatchMerging({}, 5, 4, stream); }),
              HasSubstr("patch merging needs an even grid, not 5x5"));
  PatchMerging layer({&Group::get("c4"), {}}, 4, 8, stream);
  EXPECT_EQ(layer.describe(), "4x4 of 8 to 2x2 of 16");
  EXPECT_EQ(layer.kind(), "EqPatchMerging");
  EXPECT_THAT(error_of<ShapeError>([&] {
                layer(Variable(Tensor::ones({1, 16, 4})));
              }),
              HasSubstr("takes [batch, 16, 8], not [1, 16, 4]"));
}

}  // namespace
}  // namespace gyre
