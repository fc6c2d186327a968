#include "core/group_action.h"
#include "layers/equivariance.h"
#include "tests/models/model_testing.h"

namespace gyre {
namespace {

using testing::images_for;
using testing::rel_l2;
using testing::small_config;

std::vector<EquivarianceError> logit_errors(Model& model, const Group& group, DType dtype) {
  return check_equivariance(model, group, images_for(model.config(), 3).to(dtype), Meaning::image(),
                            Meaning::invariant());
}

struct Flavour {
  const char* group;
  const char* pool;
  const char* pos_embed;
  std::int64_t patch;
};

class EqVit : public ::testing::TestWithParam<Flavour> {
 protected:
  EqVit() {
    ModelConfig config = small_config("eq_vit", GetParam().group, GetParam().pool, GetParam().pos_embed);
    config.patch_size = GetParam().patch;
    config.image_size = 4 * config.patch_size;
    if (config.pos_embed == "full") config.image_size -= config.patch_size;
    model_ = make_model(config, 1);
  }
  const Group& group_ = Group::get(GetParam().group);
  std::unique_ptr<Model> model_;
};

TEST_P(EqVit, LogitsDoNotChangeUnderTheGroup) {
  EXPECT_LT(worst_nmae(logit_errors(*model_, group_, DType::f32)), 1e-5);
  model_->to(DType::f64);
  for (const auto backend : {kernels::EqBackend::flash, kernels::EqBackend::naive}) {
    model_->set_backend(backend);
    EXPECT_LT(worst_nmae(logit_errors(*model_, group_, DType::f64)), 1e-10);
  }
}

TEST_P(EqVit, LogitsChangeUnderElementsOutside) {
  model_->to(DType::f64);
  const Group& d4 = Group::get("d4");
  const auto errors = logit_errors(*model_, d4, DType::f64);
  std::vector<bool> inside(8, false);
  for (int t = 0; t < group_.order(); ++t) inside[static_cast<std::size_t>(group_.image_element(t))] = true;
  for (std::size_t g = 0; g < 8; ++g) {
    if (inside[g])
      EXPECT_LT(errors[g].nmae, 1e-10) << g;
    else
      EXPECT_GT(errors[g].nmae, 1e-4) << g;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Flavours, EqVit,
    ::testing::Values(Flavour{"c1", "mean", "full", 2}, Flavour{"c2", "token", "full", 2},
                      Flavour{"mirror", "mean", "quarter", 2}, Flavour{"c4", "mean", "full", 2},
                      Flavour{"c4", "token", "quarter", 4}, Flavour{"c4", "token", "full", 3},
                      Flavour{"d4", "mean", "full", 4}, Flavour{"d4", "token", "quarter", 3}),
    [](const auto& test) {
      return fmt::format("{}_{}_{}_{}", test.param.group, test.param.pool, test.param.pos_embed,
                         test.param.patch);
    });

TEST(Vit, OrdinaryModelChangesUnderEveryTurn) {
  const auto model = make_model(small_config("vit", "c1"), 1);
  const auto errors = logit_errors(*model, Group::get("c4"), DType::f32);
  EXPECT_EQ(errors[0].nmae, 0);
  for (std::size_t g = 1; g < 4; ++g) EXPECT_GT(errors[g].nmae, 0.01);
}

TEST(EqVitGradient, TurnedImagesGiveEqualGradients) {
  // Invariant logits make the whole gradient invariant: training sees an image and its turns as one.
  const ModelConfig config = small_config("eq_vit", "c4", "token");
  const auto model = make_model(config, 1);
  model->to(DType::f64);
  const Tensor images = images_for(config, 2), direction = testing::random({2, 5}, 9);
  const auto gradient = [&](int g) {
    model->zero_grad();
    (*model)(Variable(act_on_image(Group::get("c4"), g, images))).backward(direction);
    TensorMap all;
    for (const auto& [name, parameter] : model->parameters()) all[name] = parameter->variable.grad().clone();
    return all;
  };
  const TensorMap own = gradient(0);
  for (int g = 1; g < 4; ++g)
    for (const auto& [name, tensor] : gradient(g))
      EXPECT_LT(rel_l2(tensor, own.at(name)), 1e-10) << name << " " << g;
}

}  // namespace
}  // namespace gyre
