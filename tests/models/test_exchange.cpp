#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/models/exchange_testing.h"
#include "tests/models/model_testing.h"

namespace gyre::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ModelConfig golden_vit() {
  ModelConfig config = golden_config("vit");
  config.width = 64;
  config.depth = 2;
  config.heads = 2;
  config.mlp_ratio = 2;
  config.pool = "token";
  return config;
}

ModelConfig golden_eq_vit() {
  ModelConfig config = golden_config("eq_vit");
  config.width = 32;
  config.depth = 2;
  config.heads = 2;
  config.mlp_ratio = 2;
  config.pool = "token";
  config.pos_embed = "quarter";
  return config;
}

TEST(Golden, VitEqualsTimm) {
  EXPECT_LE(golden_error("vit_token", golden_vit(), Layout::timm), 1e-5);
  ModelConfig mean = golden_config("vit");
  mean.width = 48;
  mean.depth = 1;
  mean.heads = 3;
  EXPECT_LE(golden_error("vit_mean", mean, Layout::timm), 1e-5);
}

TEST(Golden, ReleasedEqVitEqualsItsDenseForm) {
  EXPECT_LE(golden_error("eq_vit", golden_eq_vit(), Layout::released), 1e-5);
  ModelConfig naive = golden_eq_vit();
  naive.backend = "naive";
  EXPECT_LE(golden_error("eq_vit", naive, Layout::released), 1e-5);
}

TEST(Exchange, EveryLayoutGivesBackWhatItTook) {
  const std::vector<std::pair<ModelConfig, std::vector<Layout>>> cases = {
      {small_config("vit", "c1"), {Layout::gyre, Layout::timm}},
      {small_config("vit", "c1", "token"), {Layout::gyre, Layout::timm}},
      {small_config("eq_vit", "d4"), {Layout::gyre}},
      {small_config("eq_vit", "c4", "mean", "quarter"), {Layout::gyre, Layout::released}},
      {small_config("eq_vit", "c4", "token", "quarter"), {Layout::gyre, Layout::released}}};
  for (const auto& [config, layouts] : cases) {
    const auto model = make_model(config, 3);
    for (const Layout layout : layouts) {
      SCOPED_TRACE(fmt::format("{} {} {}", config.name, config.pool, name_of(layout)));
      const TensorMap file = export_weights(*model, layout);
      EXPECT_EQ(detect_layout(file, model->config()), is_equivariant(config) ? layout : Layout::timm);
      EXPECT_EQ(classes_in(file), 5);
      const auto other = make_model(config, 4);
      const ImportedWeights imported = import_weights(file, *other, layout);
      EXPECT_THAT(imported.notes, ElementsAre());
      EXPECT_TRUE(same_bits(imported.weights, model->state()));
      other->load_state(imported.weights);
      EXPECT_TRUE(same_bits(export_weights(*other, layout), file));
    }
  }
}

TEST(Exchange, ReleasedLayoutHasTheShapesOfItsAuthors) {
  const TensorMap file = golden("eq_vit").tensors;
  const auto model = make_model(golden_eq_vit(), 0);
  model->load_state(import_weights(file, *model, Layout::released).weights);
  TensorMap written = export_weights(*model, Layout::released);
  TensorMap expected = file;
  EXPECT_EQ(expected.erase("patch_embed.proj.basis"), 1u);
  EXPECT_TRUE(same_bits(written, expected));
}

TEST(Exchange, FrequencyPlanesAreInverted) {
  const ModelConfig config = small_config("eq_vit", "c4", "token", "quarter");
  const auto model = make_model(config, 5);
  const TensorMap state = model->state();
  TensorMap file = export_weights(*model, Layout::released);
  // What the flash variant of the authors stores: F of the index-reversed weight.
  int replaced = 0;
  for (auto& [name, tensor] : file) {
    if (!name.ends_with(".weights")) continue;
    Tensor planes = Tensor::empty({tensor.size(0), tensor.size(2), 4});
    const float* w = tensor.data<float>();
    float* p = planes.mutable_data<float>();
    for (std::int64_t i = 0; i < planes.numel(); i += 4) {
      p[i] = w[i] + w[i + 1] + w[i + 2] + w[i + 3];
      p[i + 1] = w[i] - w[i + 2];
      p[i + 2] = w[i] - w[i + 1] + w[i + 2] - w[i + 3];
      p[i + 3] = w[i + 1] - w[i + 3];
    }
    tensor = planes;
    ++replaced;
  }
  EXPECT_EQ(replaced, 8);
  const auto other = make_model(config, 6);
  const ImportedWeights imported = import_weights(file, *other, Layout::released);
  EXPECT_THAT(imported.notes, ElementsAre(StartsWith("8 tensors of frequency planes")));
  for (const auto& [name, tensor] : state) {
    const std::vector<double> a = imported.weights.at(name).to_vector(), b = tensor.to_vector();
    for (std::size_t i = 0; i < b.size(); ++i) ASSERT_NEAR(a.at(i), b[i], 2e-7) << name;
  }
}

TEST(Exchange, UntiedNormsAreAveragedAndTheLossTold) {
  const ModelConfig config = small_config("eq_vit", "c4", "token", "quarter");
  const auto model = make_model(config, 5);
  TensorMap file = export_weights(*model, Layout::released);
  // Gains (1, 3, 1, 3) of the first channel, the rest equal to 1.
  Tensor gains = Tensor::ones({32});
  gains.mutable_data<float>()[1] = gains.mutable_data<float>()[3] = 3;
  file["norm.weight"] = gains;
  const ImportedWeights imported = import_weights(file, *model, Layout::released);
  EXPECT_EQ(imported.weights.at("norm.weight").shape(), (Shape{8}));
  EXPECT_EQ(imported.weights.at("norm.weight").at({0}), 2);
  EXPECT_EQ(imported.weights.at("norm.weight").at({1}), 1);
  // √(4 / 48)
  EXPECT_THAT(imported.notes,
              ElementsAre("1 tensor not tied over the group, averaged: lost 2.89e-01 of their norm, "
                          "1.00e+00 at most in one value"));
  // Equal values lose nothing, hence no note.
  file["norm.weight"] = Tensor::full({32}, 0.1);
  EXPECT_THAT(import_weights(file, *model, Layout::released).notes, ElementsAre());
}

TEST(Exchange, EqVitIsWrittenOutAsAnOrdinaryVit) {
  for (const char* group : {"c1", "c2", "mirror", "c4", "d4"}) {
    for (const auto& [pool, positions] : {std::pair("mean", "full"), std::pair("token", "quarter")}) {
      SCOPED_TRACE(fmt::format("{} {}", group, pool));
      const ModelConfig config = small_config("eq_vit", group, pool, positions);
      const auto model = make_model(config, 9);
      // Biases and gains that differ between channels.
      TensorMap state = model->state();
      std::uint64_t index = 20;
      for (auto& [name, tensor] : state)
        if (tensor.rank() == 1) tensor = random(tensor.shape(), index++, DType::f32);
      model->load_state(state);
      const ModelConfig twin = config_in(model->config(), Layout::timm);
      EXPECT_EQ(twin.name, "vit");
      const auto plain = make_model(twin, 1);
      plain->load_state(import_weights(export_weights(*model, Layout::timm), *plain, Layout::timm).weights);
      for (Model* each : {model.get(), plain.get()}) {
        each->eval();
        each->to(DType::f64);
      }
      const NoGrad no_grad;
      const Variable images(images_for(config, 3));
      EXPECT_LE(rel_l2((*plain)(images).data(), (*model)(images).data()), 1e-12);
    }
  }
}

TEST(Exchange, HalvesAndDoublesAreRead) {
  const auto model = make_model(golden_vit(), 0);
  TensorMap file = golden("vit_token").tensors;
  const TensorMap reference = file;
  for (auto& [name, tensor] : file) {
    // The upper half of a float is a bf16.
    const Tensor dense = tensor.contiguous();
    Tensor half = Tensor::empty(dense.shape(), DType::bf16);
    const auto* from = static_cast<const std::uint16_t*>(dense.raw_data());
    auto* to = static_cast<std::uint16_t*>(half.raw_mutable_data());
    for (std::int64_t i = 0; i < dense.numel(); ++i) to[i] = from[2 * i + 1];
    tensor = half;
  }
  file["head.bias"] = reference.at("head.bias").to(DType::f64);
  const ImportedWeights imported = import_weights(file, *model, Layout::timm);
  for (const auto& [name, tensor] : imported.weights) {
    EXPECT_EQ(tensor.dtype(), DType::f32) << name;
    const std::vector<double> a = tensor.to_vector(), b = reference.at(name).to_vector();
    for (std::size_t i = 0; i < b.size(); ++i) ASSERT_NEAR(a[i], b[i], std::abs(b[i]) / 128 + 1e-30) << name;
  }
  EXPECT_TRUE(same_bits({{"b", imported.weights.at("head.bias")}}, {{"b", reference.at("head.bias")}}));
}

TEST(Exchange, BadFilesAreNamedInOneLine) {
  const TensorMap good = golden("vit_token").tensors;
  const auto with = [&](const std::string& name, const Tensor& tensor) {
    TensorMap file = good;
    file[name] = tensor;
    return refusal(file, golden_vit(), Layout::timm);
  };
  EXPECT_EQ(with("head.bias", Tensor::ones({10})), "no error");
  EXPECT_EQ(with("head.bias", Tensor::ones({11})), "tensor \"head.bias\" has shape [11], expected [10]");
  EXPECT_EQ(with("head.bias", Tensor::ones({10}, DType::i64)),
            "tensor \"head.bias\" is I64, expected F32, F64, F16 or BF16");
  EXPECT_EQ(with("fc_norm.weight", Tensor::ones({64})),
            "tensor \"fc_norm.weight\" of shape [64] is not part of vit in layout timm");
  EXPECT_EQ(with("two\nlines", Tensor::ones({1})),
            "tensor \"two\\nlines\" of shape [1] is not part of vit in layout timm");
  TensorMap lacking = good;
  lacking.erase("blocks.1.norm2.bias");
  EXPECT_EQ(refusal(lacking, golden_vit(), Layout::timm),
            "no tensor \"blocks.1.norm2.bias\", expected with shape [64] (vit in layout timm)");
  EXPECT_THAT(refusal({}, golden_vit(), Layout::timm), StartsWith("no tensor \"blocks.0.attn.proj.bias\""));

  TensorMap released = golden("eq_vit").tensors;
  released["blocks.0.attn.proj.weights"] = Tensor::ones({8, 8, 2});
  EXPECT_EQ(refusal(released, golden_eq_vit(), Layout::released),
            "tensor \"blocks.0.attn.proj.weights\" has shape [8, 8, 2], expected [8, 1, 8, 4] or [8, 8, 4]");
  released = golden("eq_vit").tensors;
  released["patch_embed.proj.c"] = Tensor::ones({1, 8, 1, 1});
  EXPECT_EQ(refusal(released, golden_eq_vit(), Layout::released),
            "tensors \"patch_embed.proj.bias\" and \"patch_embed.proj.c\" stand for the same weights");
  // Older files of the authors hold the bias under the second name.
  released.erase("patch_embed.proj.bias");
  EXPECT_EQ(refusal(released, golden_eq_vit(), Layout::released), "no error");
}

TEST(Exchange, LayoutsRefuseModelsTheyCannotHold) {
  const auto error = [](const ModelConfig& config, Layout layout) -> std::string {
    const auto model = make_model(config, 0);
    try {
      export_weights(*model, layout);
    } catch (const ValueError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error(small_config("vit", "c1"), Layout::released),
            "layout released holds equivariant models, and vit is ordinary");
  EXPECT_EQ(error(small_config("eq_vit", "c2"), Layout::released),
            "layout released holds models of the group c4, not c2");
  EXPECT_EQ(error(small_config("eq_vit", "c4"), Layout::released),
            "layout released has the quarter position table only, and pos_embed is full");
  EXPECT_EQ(parse_layout("released"), Layout::released);
  EXPECT_THROW(parse_layout("pytorch"), ValueError);
}

}  // namespace
}  // namespace gyre::testing
