#include "layers/block.h"

#include <algorithm>

#include "autograd/ops/attention.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduction.h"
#include "autograd/ops/shape.h"
#include "layers/attention.h"
#include "layers/equivariance.h"
#include "layers/mlp.h"
#include "layers/stochastic.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::init_stream;
using testing::random;
using testing::rel_l2;

constexpr int grid = 3;

LayerFamily family_of(const char* group) { return {&Group::get(group), {}}; }

class FamilyLayers : public ::testing::TestWithParam<const char*> {
 protected:
  const Group& group_ = Group::get(GetParam());
  const LayerFamily family_ = family_of(GetParam());
  const std::int64_t width_ = 6 * group_.order();
  RandomStream stream_ = init_stream();

  /// Tokens with one class token in front.
  void expect_equivariant(Module& layer) {
    const Meaning tokens = Meaning::tokens(grid, grid, 1);
    const Tensor x = random({2, 1 + grid * grid, width_}, 1);
    EXPECT_LT(worst_nmae(check_equivariance(layer, group_, x.to(DType::f32), tokens, tokens)), 1e-5);
    layer.to(DType::f64);
    EXPECT_LT(worst_nmae(check_equivariance(layer, group_, x, tokens, tokens)), 1e-12);
  }
};

TEST_P(FamilyLayers, NormIsEquivariant) { expect_equivariant(*family_.norm(width_)); }

TEST_P(FamilyLayers, LinearIsEquivariant) { expect_equivariant(*family_.linear(width_, width_, stream_)); }

TEST_P(FamilyLayers, AttentionIsEquivariant) {
  Attention layer(family_, width_, 3, stream_);
  EXPECT_EQ(layer.kind(), "EqAttention");
  expect_equivariant(layer);
}

TEST_P(FamilyLayers, MlpIsEquivariant) {
  Mlp layer(family_, width_, 2 * width_, 0, 0, stream_);
  expect_equivariant(layer);
}

TEST_P(FamilyLayers, BlockIsEquivariant) {
  Block layer(family_, {width_, 2, 4 * width_, 0, 0, 0}, stream_);
  expect_equivariant(layer);
}

TEST_P(FamilyLayers, MlpIsGeluBetweenTwoLinearLayers) {
  RandomStream same = init_stream();
  Mlp layer(family_, width_, 2 * width_, 0, 0, stream_);
  const auto fc1 = family_.linear(width_, 2 * width_, same), fc2 = family_.linear(2 * width_, width_, same);
  for (Module* module : {static_cast<Module*>(&layer), fc1.get(), fc2.get()}) module->to(DType::f64);
  const Variable x(random({3, width_}, 1));
  EXPECT_LT(rel_l2(layer(x).data(), (*fc2)(gelu((*fc1)(x))).data()), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Groups, FamilyLayers, ::testing::Values("c1", "c2", "mirror", "c4", "d4"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Attention, MatchesThePlainTwin) {
  for (const LayerFamily& family : {LayerFamily{}, family_of("c4")}) {
    RandomStream stream = init_stream();
    Attention layer(family, 24, 3, stream);
    layer.to(DType::f64);
    Module* qkv = nullptr;
    Module* proj = nullptr;
    for (const auto& [name, module] : layer.modules()) {
      if (name == "qkv") qkv = module;
      if (name == "proj") proj = module;
    }
    ASSERT_TRUE(qkv && proj);
    Variable x(random({2, 5, 24}, 1), true), same(x.data(), true);
    const Tensor grad = random({2, 5, 24}, 2);
    const Variable y = layer(x);
    const Variable expected = (*proj)(attention_reference(reshape((*qkv)(same), {2, 5, 3, 3, 8})));
    EXPECT_LT(rel_l2(y.data(), expected.data()), 1e-13);
    y.backward(grad);
    expected.backward(grad);
    EXPECT_LT(rel_l2(x.grad(), same.grad()), 1e-12);
  }
}

TEST(Attention, OrdinaryOneIsNotEquivariant) {
  RandomStream stream = init_stream();
  Attention layer({}, 24, 3, stream);
  const Meaning tokens = Meaning::tokens(grid, grid);
  const auto errors =
      check_equivariance(layer, Group::get("c4"), random({2, 9, 24}, 1, DType::f32), tokens, tokens);
  for (std::size_t g = 1; g < 4; ++g) EXPECT_GT(errors[g].nmae, 0.1);
}

TEST(Attention, HeadsOwnWholeOrbits) {
  RandomStream stream = init_stream();
  EXPECT_THAT(error_of<ShapeError>([&] { Attention(family_of("c4"), 24, 4, stream); }),
              HasSubstr("width 24 does not split into 4 heads of whole orbits of 4"));
  Attention layer({}, 24, 4, stream);
  EXPECT_THAT(error_of<ShapeError>([&] {
                layer(Variable(Tensor::ones({2, 24})));
              }),
              HasSubstr("Attention takes [batch, tokens, width], not [2, 24]"));
}

TEST(Block, NamesItsParts) {
  RandomStream stream = init_stream();
  Block layer(family_of("c4"), {24, 3, 96, 0, 0, 0}, stream);
  std::vector<std::string> names;
  for (const auto& [name, parameter] : layer.parameters()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("norm1.weight", "norm1.bias", "attn.qkv.weight", "attn.qkv.bias",
                                 "attn.proj.weight", "attn.proj.bias", "norm2.weight", "norm2.bias",
                                 "mlp.fc1.weight", "mlp.fc1.bias", "mlp.fc2.weight", "mlp.fc2.bias"));
  EXPECT_EQ(layer.state().at("attn.qkv.weight").shape(), (Shape{18, 6, 4}));
}

TEST(Block, AllPathsDroppedLeaveTheResidual) {
  RandomStream stream = init_stream();
  Block layer({}, {8, 2, 16, 0, 0.999, 0}, stream);
  std::vector<std::int64_t> ids{1, 2, 3, 4};
  const StochasticScope scope(1, 0, ids);
  const Tensor x = random({4, 3, 8}, 1, DType::f32);
  EXPECT_EQ(layer(Variable(x)).data().to_vector(), x.to_vector());
  layer.eval();
  EXPECT_GT(rel_l2(layer(Variable(x)).data(), x), 0.001);
}

/// Observers see every layer with what it met, in one pass with others or not.
TEST(Block, ShowsItsPartsToObservers) {
  RandomStream stream = init_stream();
  Block layer(family_of("c4"), {8, 2, 16, 0, 0, 0}, stream);
  const Tensor x = random({2, 3, 8}, 1, DType::f32);
  std::vector<std::string> kinds;
  std::vector<std::pair<Tensor, Tensor>> norms;
  Tensor branch;
  const ForwardObserver observer([&](Module& module, const Variable& in, const Variable& out) {
    kinds.emplace_back(module.kind());
    if (module.kind() == "EqLayerNorm") norms.emplace_back(in.data(), out.data());
    if (module.kind() == "EqAttention") branch = out.data();
  });
  layer(Variable(x));
  kinds.erase(std::remove(kinds.begin(), kinds.end(), "Dropout"), kinds.end());
  EXPECT_THAT(kinds, ElementsAre("EqLayerNorm", "EqLinear", "EqLinear", "EqAttention", "DropPath",
                                 "EqLayerNorm", "EqLinear", "EqLinear", "EqMlp", "DropPath", "EqBlock"));
  ASSERT_EQ(norms.size(), 2u);
  const Variable sum = Variable(x) + Variable(branch);
  EXPECT_EQ(norms[1].first.to_vector(), sum.data().to_vector());
  EXPECT_EQ(norms[1].second.to_vector(), (*family_of("c4").norm(8))(sum).data().to_vector());
}

TEST(Block, DrawsEveryDropOnItsOwn) {
  RandomStream stream = init_stream();
  Block layer(family_of("c4"), {8, 2, 16, 0.5, 0.5, 7}, stream);
  std::vector<std::int64_t> ids{1, 2, 3, 4};
  const Tensor x = random({4, 3, 8}, 1, DType::f32);
  const auto run = [&](std::uint64_t seed) {
    const StochasticScope scope(seed, 0, ids);
    return layer(Variable(x)).data().to_vector();
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

}  // namespace
}  // namespace gyre
