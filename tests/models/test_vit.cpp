#include "models/vit.h"

#include <numeric>
#include <set>

#include "autograd/ops/loss.h"
#include "layers/stochastic.h"
#include "tests/models/model_testing.h"

namespace gyre {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::images_for;
using testing::rel_l2;
using testing::small_config;

std::vector<std::string> names_of(Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : module.parameters()) names.push_back(name);
  return names;
}

TEST(Vit, NamesItsTree) {
  ModelConfig config = small_config("eq_vit", "c4", "token");
  config.depth = 1;
  const auto model = make_model(config, 1);
  EXPECT_THAT(names_of(*model),
              ElementsAre("cls_token", "patch_embed.proj.weight", "patch_embed.proj.bias", "pos_embed",
                          "pos_embed.cls", "blocks.0.norm1.weight", "blocks.0.norm1.bias",
                          "blocks.0.attn.qkv.weight", "blocks.0.attn.qkv.bias", "blocks.0.attn.proj.weight",
                          "blocks.0.attn.proj.bias", "blocks.0.norm2.weight", "blocks.0.norm2.bias",
                          "blocks.0.mlp.fc1.weight", "blocks.0.mlp.fc1.bias", "blocks.0.mlp.fc2.weight",
                          "blocks.0.mlp.fc2.bias", "norm.weight", "norm.bias", "head.weight", "head.bias"));
  config = small_config("vit", "c1", "token");
  config.depth = 1;
  const auto plain = make_model(config, 1);
  const TensorMap state = plain->state();
  EXPECT_EQ(state.size(), 20u);
  EXPECT_EQ(state.at("cls_token").shape(), (Shape{1, 1, 32}));
  EXPECT_EQ(state.at("pos_embed").shape(), (Shape{1, 17, 32}));
  EXPECT_EQ(state.at("patch_embed.proj.weight").shape(), (Shape{32, 2, 2, 2}));
  EXPECT_EQ(state.at("blocks.0.attn.qkv.weight").shape(), (Shape{96, 32}));
  EXPECT_EQ(state.at("norm.weight").shape(), (Shape{32}));
}

TEST(Vit, DecaysWeightMatricesOnly) {
  for (const char* name : {"vit", "eq_vit"}) {
    const auto model = make_model(small_config(name, name == std::string("vit") ? "c1" : "c4", "token"), 1);
    for (const auto& [own, parameter] : model->parameters()) {
      const bool matrix = own.ends_with(".weight") && own.find("norm") == std::string::npos;
      EXPECT_EQ(parameter->decay, matrix) << own;
    }
  }
}

TEST(Vit, WeightsDependOnTheSeedAlone) {
  const ModelConfig config = small_config("eq_vit", "c4", "token");
  const auto a = make_model(config, 1), b = make_model(config, 1), c = make_model(config, 2);
  for (const auto& [name, tensor] : a->state()) {
    EXPECT_EQ(tensor.to_vector(), b->state().at(name).to_vector()) << name;
    const bool constant = name.find("norm") != std::string::npos || name == "head.bias";
    EXPECT_EQ(tensor.to_vector() == c->state().at(name).to_vector(), constant) << name;
  }
  EXPECT_NE(a->state().at("blocks.0.mlp.fc2.weight").to_vector(),
            a->state().at("blocks.1.mlp.fc2.weight").to_vector());
  ModelConfig other = config;
  other.classes = 9;
  other.depth = 3;
  const auto d = make_model(other, 1);
  EXPECT_EQ(a->state().at("blocks.1.mlp.fc2.weight").to_vector(),
            d->state().at("blocks.1.mlp.fc2.weight").to_vector());
}

TEST(Vit, HeadStartsWithUnitVarianceOverTheSum) {
  ModelConfig config = small_config("eq_vit", "c4");
  config.width = 256;
  config.classes = 50;
  double largest = 0;
  for (const double v : make_model(config, 1)->state().at("head.weight").to_vector())
    largest = std::max(largest, std::abs(v));
  EXPECT_LE(largest, 1 / 16.0);  // 1/√64 / √4
  EXPECT_GT(largest, 0.9 / 16);
}

struct Flavour {
  const char* name;
  const char* group;
  const char* pool;
  const char* pos_embed;
};

class EveryVit : public ::testing::TestWithParam<Flavour> {
 protected:
  ModelConfig config_ =
      small_config(GetParam().name, GetParam().group, GetParam().pool, GetParam().pos_embed);
  std::unique_ptr<Model> model_ = make_model(config_, 1);
  Tensor labels_ = Tensor::from<std::int64_t>({0, 3, 4}, {3});

  /// Gradients of the loss by name, and the logits.
  TensorMap gradients(Model& model, DType dtype) {
    model.zero_grad();
    const Variable logits = model(Variable(images_for(config_, 3).to(dtype)));
    cross_entropy(logits, labels_).backward();
    TensorMap all{{"logits", logits.data()}};
    for (const auto& [name, parameter] : model.parameters()) all[name] = parameter->variable.grad();
    return all;
  }
};

TEST_P(EveryVit, MapsImagesToLogits) {
  const Tensor logits = (*model_)(Variable(images_for(config_, 3, 1, DType::f32))).data();
  EXPECT_EQ(logits.shape(), (Shape{3, 5}));
  EXPECT_GT(rel_l2(logits.slice(0, 0, 1), logits.slice(0, 1, 2)), 0.01);
}

TEST_P(EveryVit, GivesEveryParameterAGradient) {
  for (const auto& [name, gradient] : gradients(*model_, DType::f32)) {
    ASSERT_TRUE(gradient.defined()) << name;
    double largest = 0;
    for (const double v : gradient.to_vector()) largest = std::max(largest, std::abs(v));
    EXPECT_GT(largest, 1e-7) << name;
  }
}

TEST_P(EveryVit, SinglePrecisionAgreesWithDouble) {
  const TensorMap single = gradients(*model_, DType::f32);
  model_->to(DType::f64);
  for (const auto& [name, gradient] : gradients(*model_, DType::f64))
    EXPECT_LT(rel_l2(single.at(name), gradient), 2e-5) << name;
}

TEST_P(EveryVit, GradientIsTheSlopeOfTheLoss) {
  model_->to(DType::f64);
  const TensorMap gradient = gradients(*model_, DType::f64);
  const auto loss = [&] {
    const NoGrad no_grad;
    return cross_entropy((*model_)(Variable(images_for(config_, 3))), labels_).data().item();
  };
  std::uint64_t index = 100;
  for (const auto& [name, parameter] : model_->parameters()) {
    // Along one random direction per parameter, central differences of fourth order.
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

INSTANTIATE_TEST_SUITE_P(Flavours, EveryVit,
                         ::testing::Values(Flavour{"vit", "c1", "mean", "full"},
                                           Flavour{"vit", "c1", "token", "full"},
                                           Flavour{"eq_vit", "c4", "mean", "full"},
                                           Flavour{"eq_vit", "c4", "token", "quarter"},
                                           Flavour{"eq_vit", "d4", "token", "full"},
                                           Flavour{"eq_vit", "mirror", "mean", "quarter"}),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}_{}", test.param.name, test.param.group,
                                              test.param.pool, test.param.pos_embed);
                         });

TEST(Vit, BackendsAgreeAndNameTheirKernels) {
  ModelConfig config = small_config("eq_vit", "c4");
  config.width = 128;
  const auto model = make_model(config, 1);
  const Variable images(images_for(config, 3, 1, DType::f32));
  model->set_backend(kernels::EqBackend::flash);
  EXPECT_EQ(model->config().backend, "flash");
  const Tensor flash = (*model)(images).data();
  for (const std::string& name : model->kernel_names()) EXPECT_THAT(name, HasSubstr("flash"));
  model->set_backend(kernels::EqBackend::naive);
  EXPECT_LT(rel_l2((*model)(images).data(), flash), 1e-5);
  for (const std::string& name : model->kernel_names()) EXPECT_THAT(name, HasSubstr("naive"));
  EXPECT_FALSE(model->kernel_names().empty());
  EXPECT_TRUE(make_model(small_config("vit", "c1"), 1)->kernel_names().empty());
}

TEST(Vit, DropPathRisesLinearlyAndRestsInEval) {
  ModelConfig config = small_config("eq_vit", "c4");
  config.depth = 3;
  config.drop_path = 0.4;
  config.dropout = 0.1;
  const auto model = make_model(config, 1);
  std::vector<std::string> rates;
  for (const auto& [name, module] : model->modules())
    if (name.ends_with("drop_path2")) rates.push_back(module->describe());
  EXPECT_THAT(rates, ElementsAre("rate 0", "rate 0.2", "rate 0.4"));

  config.drop_path = config.dropout = 0;
  const auto plain = make_model(config, 1);
  const Variable images(images_for(config, 3, 1, DType::f32));
  EXPECT_THAT(error_of([&] { (*model)(images); }), HasSubstr("needs a StochasticScope"));
  model->eval();
  EXPECT_EQ((*model)(images).data().to_vector(), (*plain)(images).data().to_vector());
}

TEST(Vit, EveryDropDrawsNumbersOfItsOwn) {
  ModelConfig config = small_config("vit", "c1");
  config.depth = 3;
  config.drop_path = config.dropout = 0.5;
  const auto model = make_model(config, 1);
  std::vector<std::int64_t> ids(64);
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  const StochasticScope scope(1, 0, ids);
  std::set<std::vector<double>> masks;
  std::size_t drops = 0;
  for (const auto& [name, module] : model->modules()) {
    if (module->kind() != "Dropout" && module->describe() != "rate 0.5")
      continue;  // drop path: the last block's
    masks.insert((*module)(Variable(Tensor::ones({64, 1}))).data().to_vector());
    ++drops;
  }
  EXPECT_EQ(drops, 1u + 3 * 3 + 2);
  EXPECT_EQ(masks.size(), drops);
}

TEST(Vit, TrainingPassDoesNotDependOnTheBatchSplit) {
  ModelConfig config = small_config("eq_vit", "c4", "token");
  config.drop_path = 0.5;
  config.dropout = 0.2;
  const auto model = make_model(config, 1);
  model->to(DType::f64);
  const Tensor images = images_for(config, 4);
  const std::vector<std::int64_t> ids{7, 3, 900, 12};
  const auto run = [&](std::int64_t first, std::int64_t last) {
    const StochasticScope scope(
        5, 2,
        std::span(ids).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
    return (*model)(Variable(images.slice(0, first, last))).data();
  };
  const Tensor whole = run(0, 4);
  EXPECT_LT(rel_l2(run(0, 1), whole.slice(0, 0, 1)), 1e-13);
  EXPECT_LT(rel_l2(run(1, 4), whole.slice(0, 1, 4)), 1e-13);
  model->eval();
  EXPECT_GT(rel_l2(run(0, 4), whole), 1e-3);
}

TEST(Vit, RefusesImagesOfOtherSizes) {
  const auto model = make_model(small_config("eq_vit", "c4"), 1);
  EXPECT_THAT(error_of<ShapeError>([&] {
                (*model)(Variable(Tensor::ones({1, 2, 10, 10})));
              }),
              HasSubstr("takes images [batch, 2, 8, 8], not [1, 2, 10, 10]"));
  EXPECT_THAT(model->describe(), HasSubstr("width 32, depth 2, heads 2"));
}

}  // namespace
}  // namespace gyre
