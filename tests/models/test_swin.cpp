#include "models/swin.h"

#include "autograd/gradcheck.h"
#include "autograd/ops/loss.h"
#include "layers/equivariance.h"
#include "layers/window_attention.h"
#include "tests/models/model_testing.h"

namespace gyre {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::images_for;
using testing::rel_l2;
using testing::small_swin;

/// Relative position tables start near zero; here they weigh as much as the scores.
void fill_tables(Model& model) {
  std::uint64_t index = 50;
  for (const auto& [name, parameter] : model.parameters())
    if (name.ends_with("relative_position_bias_table"))
      parameter->variable.set_data(
          testing::random(parameter->variable.shape(), index++, parameter->variable.dtype()));
}

std::vector<EquivarianceError> logit_errors(Model& model, const Group& group, DType dtype) {
  model.to(dtype);
  fill_tables(model);
  return check_equivariance(model, group, images_for(model.config(), 2).to(dtype), Meaning::image(),
                            Meaning::invariant());
}

TEST(Swin, NamesItsTree) {
  ModelConfig config = small_swin("swin", "c1");
  config.depths = {1, 1};
  std::vector<std::string> names;
  const auto model = make_model(config, 1);
  for (const auto& [name, parameter] : model->parameters()) names.push_back(name);
  std::vector<std::string> expected{"patch_embed.proj.weight", "patch_embed.proj.bias",
                                    "patch_embed.norm.weight", "patch_embed.norm.bias"};
  for (const std::string stage : {"layers.0", "layers.1"}) {
    if (stage == "layers.1")
      for (const char* own : {"norm.weight", "norm.bias", "reduction.weight"})
        expected.push_back(stage + ".downsample." + own);
    for (const char* own :
         {"norm1.weight", "norm1.bias", "attn.relative_position_bias_table", "attn.qkv.weight",
          "attn.qkv.bias", "attn.proj.weight", "attn.proj.bias", "norm2.weight", "norm2.bias",
          "mlp.fc1.weight", "mlp.fc1.bias", "mlp.fc2.weight", "mlp.fc2.bias"})
      expected.push_back(stage + ".blocks.0." + own);
  }
  for (const char* own : {"norm.weight", "norm.bias", "head.fc.weight", "head.fc.bias"})
    expected.push_back(own);
  EXPECT_EQ(names, expected);
  const TensorMap state = model->state();
  EXPECT_EQ(state.at("patch_embed.proj.weight").shape(), (Shape{16, 2, 2, 2}));
  EXPECT_EQ(state.at("layers.0.blocks.0.attn.relative_position_bias_table").shape(), (Shape{49, 2}));
  EXPECT_EQ(state.at("layers.1.blocks.0.attn.relative_position_bias_table").shape(), (Shape{49, 4}));
  EXPECT_EQ(state.at("layers.1.downsample.norm.weight").shape(), (Shape{64}));
  EXPECT_EQ(state.at("layers.1.downsample.reduction.weight").shape(), (Shape{32, 64}));
  EXPECT_EQ(state.at("head.fc.weight").shape(), (Shape{5, 32}));

  config.name = "eq_swin";
  config.group = "c4";
  const TensorMap equivariant = make_model(config, 1)->state();
  EXPECT_EQ(equivariant.size(), state.size() + 1);
  EXPECT_EQ(equivariant.at("layers.1.downsample.reduction.weight").shape(), (Shape{8, 16, 4}));
  EXPECT_EQ(equivariant.at("layers.1.downsample.reduction.bias").shape(), (Shape{8}));
  EXPECT_EQ(equivariant.at("layers.1.downsample.norm.weight").shape(), (Shape{8}));
  EXPECT_EQ(equivariant.at("patch_embed.norm.weight").shape(), (Shape{4}));
}

TEST(Swin, MovesTheWindowsOfEverySecondBlock) {
  ModelConfig config = small_swin("eq_swin", "c4");
  config.depths = {3, 2};
  const auto model = make_model(config, 1);
  std::vector<std::string> windows;
  for (const auto& [name, module] : model->modules())
    if (const auto* layer = dynamic_cast<const WindowAttention*>(module))
      windows.push_back(
          fmt::format("{} {} {}", layer->windows().grid, layer->windows().window, layer->windows().shift));
  // The second stage is one window, which has nowhere to move.
  EXPECT_THAT(windows, ElementsAre("8 4 0", "8 4 2", "8 4 0", "4 4 0", "4 4 0"));
  EXPECT_THAT(model->describe(), HasSubstr("depths 3 2, heads 2, window 4"));
}

TEST(Swin, NormsHaveTheirEps) {
  const auto model = make_model(small_swin("swin", "c1"), 1);
  for (const auto& [name, module] : model->modules()) {
    if (module->kind() != "LayerNorm") continue;
    EXPECT_THAT(module->describe(), HasSubstr("eps 1e-05")) << name;
  }
}

struct Flavour {
  const char* group;
  std::int64_t patch, window;
};

class EqSwin : public ::testing::TestWithParam<Flavour> {
 protected:
  EqSwin() {
    ModelConfig config = small_swin("eq_swin", GetParam().group);
    config.patch_size = GetParam().patch;
    config.window = GetParam().window;
    config.image_size = 4 * config.patch_size * config.window;
    if (config.window == 3) config.image_size /= 2;  // windows of 3 on 6 × 6 move by 1: not exact
    if (config.window == 3) config.depths = {1, 2};
    model_ = make_model(config, 1);
  }
  const Group& group_ = Group::get(GetParam().group);
  std::unique_ptr<Model> model_;
};

TEST_P(EqSwin, LogitsDoNotChangeUnderTheGroup) {
  EXPECT_LT(worst_nmae(logit_errors(*model_, group_, DType::f32)), 1e-5);
  for (const auto backend : {kernels::EqBackend::flash, kernels::EqBackend::naive}) {
    model_->set_backend(backend);
    EXPECT_LT(worst_nmae(logit_errors(*model_, group_, DType::f64)), 1e-10);
  }
}

TEST_P(EqSwin, LogitsChangeUnderElementsOutside) {
  const auto errors = logit_errors(*model_, Group::get("d4"), DType::f64);
  std::vector<bool> inside(8, false);
  for (int t = 0; t < group_.order(); ++t) inside[static_cast<std::size_t>(group_.image_element(t))] = true;
  for (std::size_t g = 0; g < 8; ++g) {
    if (inside[g])
      EXPECT_LT(errors[g].nmae, 1e-10) << g;
    else
      EXPECT_GT(errors[g].nmae, 1e-4) << g;
  }
}

INSTANTIATE_TEST_SUITE_P(Flavours, EqSwin,
                         ::testing::Values(Flavour{"c1", 2, 2}, Flavour{"c2", 2, 4}, Flavour{"mirror", 1, 2},
                                           Flavour{"c4", 2, 4}, Flavour{"c4", 4, 2}, Flavour{"c4", 3, 3},
                                           Flavour{"d4", 2, 4}, Flavour{"d4", 1, 2}, Flavour{"d4", 2, 3}),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}", test.param.group, test.param.patch,
                                              test.param.window);
                         });

TEST(EqSwin, WindowSevenIsOnlyApproximate) {
  // The windows of the paper: 14 × 14 tokens, windows of 7 moved by 3.
  ModelConfig config = small_swin("eq_swin", "d4");
  config.image_size = 28;
  config.window = 7;
  EXPECT_THAT(error_of<ShapeError>([&] { make_model(config, 1); }), HasSubstr("model.window 7"));
  config.approximate = true;
  const auto model = make_model(config, 1);
  EXPECT_FALSE(is_exact(model->config()));
  const auto errors = logit_errors(*model, Group::get("d4"), DType::f64);
  for (std::size_t g = 1; g < 8; ++g) {
    // Nearly right, yet ten orders of magnitude from exact. The transpose survives.
    if (g == 5)
      EXPECT_LT(errors[g].nmae, 1e-10);
    else
      EXPECT_GT(errors[g].nmae, 1e-4) << g;
  }
  config.depths = {1, 1};  // no windows move
  config.approximate = false;
  const auto still = make_model(config, 1);
  EXPECT_LT(worst_nmae(logit_errors(*still, Group::get("d4"), DType::f64)), 1e-10);
}

class EverySwin : public ::testing::TestWithParam<const char*> {
 protected:
  ModelConfig config_ = small_swin(GetParam() == std::string("c1") ? "swin" : "eq_swin", GetParam());
  std::unique_ptr<Model> model_ = make_model(config_, 1);
  Tensor labels_ = Tensor::from<std::int64_t>({0, 3, 4}, {3});

  TensorMap gradients(DType dtype) {
    model_->to(dtype);
    const Variable logits = (*model_)(Variable(images_for(config_, 3).to(dtype)));
    cross_entropy(logits, labels_).backward();
    TensorMap all{{"logits", logits.data()}};
    for (const auto& [name, parameter] : model_->parameters()) all[name] = parameter->variable.grad();
    return all;
  }
};

TEST_P(EverySwin, GivesEveryParameterAGradientInBothPrecisions) {
  fill_tables(*model_);
  const TensorMap single = gradients(DType::f32), twice = gradients(DType::f64);
  for (const auto& [name, gradient] : twice) {
    double largest = 0;
    for (const double v : gradient.to_vector()) largest = std::max(largest, std::abs(v));
    EXPECT_GT(largest, 1e-8) << name;
    EXPECT_LT(rel_l2(single.at(name), gradient), 5e-5) << name;
  }
}

TEST_P(EverySwin, GradientIsTheSlopeOfTheLoss) {
  model_->to(DType::f64);
  fill_tables(*model_);
  const TensorMap gradient = gradients(DType::f64);
  const auto loss = [&] {
    const NoGrad no_grad;
    return cross_entropy((*model_)(Variable(images_for(config_, 3))), labels_).data().item();
  };
  std::uint64_t index = 100;
  for (const auto& [name, parameter] : model_->parameters()) {
    const Tensor own = parameter->variable.data(), direction = testing::random(own.shape(), index++);
    const double step = 1e-5;
    double slope = 0;
    for (const auto& [offset, weight] : {std::pair{1, 8}, {-1, -8}, {2, -1}, {-2, 1}}) {
      Tensor moved = own.clone();
      for (std::int64_t i = 0; i < own.numel(); ++i)
        moved.mutable_data<double>()[i] += offset * step * direction.data<double>()[i];
      parameter->variable.set_data(moved);
      slope += weight * loss() / (12 * step);
    }
    parameter->variable.set_data(own);
    EXPECT_NEAR(testing::dot(gradient.at(name), direction), slope, 1e-7 + 1e-6 * std::abs(slope)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, EverySwin, ::testing::Values("c1", "c4", "d4"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Swin, GradcheckOfATinyOne) {
  for (const char* name : {"swin", "eq_swin"}) {
    ModelConfig config = small_swin(name, name == std::string("swin") ? "c1" : "c4");
    config.image_size = 8;
    config.patch_size = 2;
    config.window = 2;
    config.depths = {2, 1};
    config.width = 8;
    config.in_channels = 1;
    config.mlp_ratio = 1;
    config.classes = 3;
    const auto model = make_model(config, 1);
    model->to(DType::f64);
    fill_tables(*model);
    const auto logits = [&](std::vector<Variable>& in) { return (*model)(in[0]); };
    const GradcheckResult result = gradcheck(logits, {images_for(config, 1)});
    EXPECT_TRUE(result.pass) << name << " " << result.where;
  }
}

TEST(Swin, DropPathRisesOverAllStages) {
  ModelConfig config = small_swin("eq_swin", "c4");
  config.drop_path = 0.2;
  const auto model = make_model(config, 1);
  std::vector<std::string> rates;
  for (const auto& [name, module] : model->modules())
    if (name.ends_with("drop_path2")) rates.push_back(module->describe());
  EXPECT_THAT(rates, ElementsAre("rate 0", "rate 0.1", "rate 0.2"));
}

}  // namespace
}  // namespace gyre
