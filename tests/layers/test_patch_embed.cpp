#include "layers/patch_embed.h"

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduction.h"
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

/// Element t of the group applied to one k × k filter plane, by rot90 and fliplr alone.
std::vector<double> turned(const Group& group, int t, std::vector<double> plane, int k) {
  const int element = group.image_element(t);
  if (element >= 4) plane = testing::mirrored(plane, k);
  for (int turn = 0; turn < element % 4; ++turn) plane = testing::rotated(plane, k);
  return plane;
}

/// Y[b, patch, d·T + t] = ⟨t·w_d, patch⟩ + bias_d, written out.
Tensor direct(const Group& group, const Tensor& images, const Tensor& w, const Tensor& bias) {
  const int batch = static_cast<int>(images.size(0)), colours = static_cast<int>(images.size(1));
  const int k = static_cast<int>(w.size(2)), grid = static_cast<int>(images.size(2)) / k;
  const int out = static_cast<int>(w.size(0)), order = group.order();
  std::vector<double> y;
  for (int b = 0; b < batch; ++b) {
    for (int patch = 0; patch < grid * grid; ++patch) {
      for (int d = 0; d < out; ++d) {
        for (int t = 0; t < order; ++t) {
          double sum = bias.at({d});
          for (int c = 0; c < colours; ++c) {
            const std::vector<double> filter = turned(group, t, w.select(0, d).select(0, c).to_vector(), k);
            for (int i = 0; i < k * k; ++i)
              sum += filter[static_cast<std::size_t>(i)] *
                     images.at({b, c, patch / grid * k + i / k, patch % grid * k + i % k});
          }
          y.push_back(sum);
        }
      }
    }
  }
  return Tensor::from(y, {batch, grid * grid, out * order});
}

struct Case {
  const char* group;
  int patch;
};

class EqPatchEmbedGroups : public ::testing::TestWithParam<Case> {
 protected:
  const Group& group_ = Group::get(GetParam().group);
  const int patch_ = GetParam().patch;
  const int grid_ = 3;
  RandomStream stream_ = init_stream();
  EqPatchEmbed layer_{group_, {2, grid_* patch_, patch_}, 3, stream_};
  Tensor images_ = random({2, 2, grid_* patch_, grid_* patch_}, 1);
};

TEST_P(EqPatchEmbedGroups, AppliesTheTurnedFilters) {
  layer_.to(DType::f64);
  const Tensor y = layer_(Variable(images_)).data();
  const TensorMap state = layer_.state();
  ASSERT_EQ(state.at("proj.weight").shape(), (Shape{3, 2, patch_, patch_}));
  EXPECT_LT(rel_l2(y, direct(group_, images_, state.at("proj.weight"), state.at("proj.bias"))), 1e-13);
}

TEST_P(EqPatchEmbedGroups, FilterGradientIsExact) {
  layer_.to(DType::f64);
  const Variable y = layer_(Variable(images_));
  const Tensor grad = random(y.shape(), 2), before = y.data().clone();
  y.backward(grad);
  // The layer is linear in its filter, so a finite step is exact up to rounding.
  Variable& filter = layer_.parameters()[0].parameter->variable;
  Tensor data = filter.data();
  for (std::int64_t i = 0; i < data.numel(); ++i) {
    data.mutable_data<double>()[i] += 1;
    const Tensor after = layer_(Variable(images_)).data();
    data.mutable_data<double>()[i] -= 1;
    EXPECT_NEAR(filter.grad().contiguous().data<double>()[i],
                testing::dot(after, grad) - testing::dot(before, grad), 1e-10);
  }
}

TEST_P(EqPatchEmbedGroups, IsEquivariant) {
  const Meaning tokens = Meaning::tokens(grid_, grid_);
  EXPECT_LT(worst_nmae(check_equivariance(layer_, group_, images_.to(DType::f32), Meaning::image(), tokens)),
            1e-5);
  layer_.to(DType::f64);
  EXPECT_LT(worst_nmae(check_equivariance(layer_, group_, images_, Meaning::image(), tokens)), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Sizes, EqPatchEmbedGroups,
                         ::testing::Values(Case{"c1", 3}, Case{"c2", 2}, Case{"c2", 3}, Case{"mirror", 4},
                                           Case{"mirror", 3}, Case{"c4", 1}, Case{"c4", 2}, Case{"c4", 3},
                                           Case{"c4", 4}, Case{"c4", 5}, Case{"d4", 2}, Case{"d4", 3},
                                           Case{"d4", 4}, Case{"d4", 5}),
                         [](const auto& test) {
                           return fmt::format("{}_{}", test.param.group, test.param.patch);
                         });

TEST(PatchEmbed, IsTheOrdinaryConvolution) {
  RandomStream stream = init_stream();
  PatchEmbed layer({2, 6, 3}, 5, stream);
  layer.to(DType::f64);
  Tensor bias = layer.state().at("proj.bias");
  bias.copy_(random({5}, 3));
  const Tensor images = random({2, 2, 6, 6}, 1);
  const Variable y = layer(Variable(images));
  ASSERT_EQ(y.shape(), (Shape{2, 4, 5}));
  const Tensor w = layer.state().at("proj.weight");
  EXPECT_LT(rel_l2(y.data(), direct(Group::get("c1"), images, w, bias)), 1e-13);
  y.backward(Tensor::ones(y.shape(), DType::f64));
  EXPECT_EQ(layer.parameters()[0].parameter->variable.grad().shape(), w.shape());
}

TEST(PatchEmbed, IsNotEquivariant) {
  RandomStream stream = init_stream();
  PatchEmbed layer({1, 8, 4}, 16, stream);
  const auto errors = check_equivariance(layer, Group::get("c4"), random({2, 1, 8, 8}, 1, DType::f32),
                                         Meaning::image(), Meaning::tokens(2, 2));
  EXPECT_EQ(errors[0].nmae, 0);
  for (std::size_t g = 1; g < 4; ++g) EXPECT_GT(errors[g].nmae, 0.5);
}

TEST(EqPatchEmbed, PlanesFollowTheFilterOnly) {
  RandomStream stream = init_stream();
  EqPatchEmbed layer(Group::get("c4"), {3, 16, 8}, 8, stream);
  const Variable images(random({2, 3, 16, 16}, 1, DType::f32));
  for (int micro = 0; micro < 4; ++micro) sum(layer(images) * layer(images)).backward();
  EXPECT_EQ(layer.rebuilds(), 1);
  Tensor filter = layer.state().at("proj.weight");
  filter.mutable_data<float>()[0] += 1;
  for (int micro = 0; micro < 4; ++micro) sum(layer(images) * layer(images)).backward();
  EXPECT_EQ(layer.rebuilds(), 2);
  const NoGrad no_grad;
  const Tensor before = layer(images).data();
  EXPECT_EQ(layer.rebuilds(), 2);
  layer.load_state({{"proj.weight", Tensor::ones(filter.shape())}, {"proj.bias", Tensor::zeros({8})}});
  EXPECT_GT(rel_l2(layer(images).data(), before), 0.1);
  EXPECT_EQ(layer.rebuilds(), 3);
}

TEST(EqPatchEmbed, RefusesOtherImagesAndGroups) {
  RandomStream stream = init_stream();
  EqPatchEmbed layer(Group::get("c4"), {3, 16, 8}, 2, stream);
  EXPECT_THAT(error_of<ShapeError>([&] {
                layer(Variable(Tensor::ones({2, 1, 16, 16})));
              }),
              HasSubstr("EqPatchEmbed takes images [batch, 3, 16, 16], not [2, 1, 16, 16]"));
  EXPECT_THAT(error_of<ValueError>([&] {
                EqPatchEmbed(Group::get("c8"), {3, 16, 8}, 2, stream);
              }),
              HasSubstr("c8 has no exact image action"));
}

}  // namespace
}  // namespace gyre
