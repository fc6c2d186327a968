#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/exchange_testing.h"
#include "tests/models/model_testing.h"

namespace gyre::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

ModelConfig golden_swin() {
  ModelConfig config = golden_config("swin");
  config.patch_size = 2;
  config.width = 16;
  config.depths = {2, 2};
  config.heads = 2;
  config.window = 4;
  return config;
}

TEST(Golden, SwinEqualsTimm) {
  EXPECT_LE(golden_error("swin", golden_swin(), Layout::timm), 1e-5);
  ModelConfig clamped = golden_swin();
  clamped.patch_size = 4;
  clamped.heads = 1;
  EXPECT_LE(golden_error("swin_clamped", clamped, Layout::timm), 1e-5);
}

/// The golden Swin as files from before timm 0.9 have it.
TensorMap older(const TensorMap& file) {
  TensorMap old;
  for (const auto& [name, tensor] : file) {
    std::string other = name;
    if (name.starts_with("layers.1.downsample.")) other[7] = '0';
    if (name.starts_with("head.fc.")) other.erase(5, 3);
    old[other] = tensor;
  }
  old["layers.0.blocks.0.attn.relative_position_index"] = Tensor::zeros({16, 16}, DType::i64);
  old["layers.0.blocks.1.attn_mask"] = Tensor::zeros({16, 16, 16});
  return old;
}

TEST(Exchange, OlderSwinFilesAreRead) {
  const TensorMap file = golden("swin").tensors, old = older(file);
  EXPECT_EQ(old.size(), file.size() + 2);
  const auto model = make_model(golden_swin(), 0);
  const ImportedWeights imported = import_weights(old, *model, Layout::timm);
  EXPECT_THAT(imported.notes, ElementsAre("2 buffers left out: computed here"));
  EXPECT_TRUE(same_bits(imported.weights, import_weights(file, *model, Layout::timm).weights));
  EXPECT_EQ(classes_in(old), 10);

  TensorMap twice = file;
  twice["head.weight"] = file.at("head.fc.weight");
  EXPECT_EQ(refusal(twice, golden_swin(), Layout::timm),
            "tensors \"head.fc.weight\" and \"head.weight\" stand for the same weights");
  TensorMap mixed = old;
  mixed["layers.1.downsample.norm.weight"] = Tensor::ones({64});
  EXPECT_EQ(refusal(mixed, golden_swin(), Layout::timm),
            "tensor \"layers.1.downsample.norm.weight\" of shape [64] is not part of swin in layout timm");
}

ModelConfig small_eq_swin() {
  ModelConfig config = golden_swin();
  config.name = "eq_swin";
  return config;
}

ModelConfig golden_eq_swin() {
  ModelConfig config = small_eq_swin();
  config.mlp_ratio = 2;
  return config;
}

TEST(Golden, ReleasedEqSwinEqualsItsDefinition) {
  for (const char* name : {"eq_swin", "eq_swin_planes"}) {
    for (const char* backend : {"auto", "naive", "flash"}) {
      SCOPED_TRACE(fmt::format("{} {}", name, backend));
      ModelConfig config = golden_eq_swin();
      config.backend = backend;
      EXPECT_LE(golden_error(name, config, Layout::released, "eq_swin"), 1e-5);
    }
  }
}

TEST(Exchange, ReleasedEqSwinTellsWhatChanged) {
  const auto model = make_model(golden_eq_swin(), 0);
  const auto notes = [&](const char* name) {
    return import_weights(golden(name).tensors, *model, Layout::released).notes;
  };
  EXPECT_THAT(notes("eq_swin"), ElementsAre("2 buffers left out: computed here"));
  EXPECT_THAT(notes("eq_swin_planes"),
              ElementsAre("22 tensors not tied over the group, averaged: lost 3.35e-01 of their norm, "
                          "6.79e-01 at most in one value",
                          "16 tensors of frequency planes, turned back to rounding (not bit for bit)",
                          "2 buffers left out: computed here"));
}

TEST(Exchange, SwinFilesHaveTheShapesOfTheirAuthors) {
  for (const auto& [name, config, layout] :
       {std::tuple("swin", golden_swin(), Layout::timm), {"eq_swin", golden_eq_swin(), Layout::released}}) {
    SCOPED_TRACE(name);
    TensorMap file = golden(name).tensors;
    const auto model = make_model(config, 0);
    EXPECT_EQ(detect_layout(file, model->config()), layout);
    EXPECT_EQ(classes_in(file), 10);
    model->load_state(import_weights(file, *model, layout).weights);
    std::erase_if(file, [](const auto& entry) { return entry.first.ends_with(".basis"); });
    EXPECT_TRUE(same_bits(export_weights(*model, layout), file));
  }
}

TEST(Exchange, EqSwinGoesOutAndComesBack) {
  const auto model = make_model(small_eq_swin(), 3);
  for (const Layout layout : {Layout::gyre, Layout::released}) {
    const TensorMap file = export_weights(*model, layout);
    EXPECT_EQ(detect_layout(file, model->config()), layout);
    const ImportedWeights imported = import_weights(file, *model, layout);
    EXPECT_TRUE(same_bits(imported.weights, model->state()));
    EXPECT_THAT(imported.notes, ElementsAre());
  }
  TensorMap file = export_weights(*model, Layout::released);
  EXPECT_EQ(file.at("layers.0.downsample.reduction.weight").shape(), (Shape{8, 4, 4, 4}));
  EXPECT_EQ(file.at("layers.0.downsample.norm.weight").shape(), (Shape{32}));
  EXPECT_EQ(file.at("patch_embed.proj.weight").shape(), (Shape{4, 3, 1, 4}));
  EXPECT_EQ(file.at("head.weights").shape(), (Shape{10, 8}));
  file["layers.1.blocks.1.norm1.bias"] = random({32}, 1, DType::f32);
  EXPECT_THAT(import_weights(file, *model, Layout::released).notes,
              ElementsAre(StartsWith("1 tensor not tied over the group, averaged: lost ")));
  EXPECT_THROW(export_weights(*model, Layout::timm), ValueError);
}

TEST(Exchange, PatchMergingOfTheReleasedLayoutIsItsConvolution) {
  const auto model = make_model(small_eq_swin(), 3);
  model->to(DType::f64);
  Module *merging = nullptr, *norm = nullptr;
  for (const auto& [name, module] : model->modules()) {
    if (name == "layers.1.downsample") merging = module;
    if (name == "layers.1.downsample.norm") norm = module;
  }
  ASSERT_TRUE(merging && norm);
  const TensorMap file = export_weights(*model, Layout::released);
  const Tensor& v = file.at("layers.0.downsample.reduction.weight");
  const Tensor& bias = file.at("layers.0.downsample.reduction.bias");
  const std::int64_t size = 16, channels = 4, outs = 8;
  const Tensor x = random({1, size * size, channels * 4}, 2);
  Tensor y = Tensor::zeros({1, size * size / 4, outs * 4}, DType::f64);
  for (std::int64_t place = 0; place < size * size / 4; ++place) {
    const std::int64_t top = place / (size / 2) * 2, left = place % (size / 2) * 2;
    for (std::int64_t d = 0; d < outs; ++d) {
      for (std::int64_t t = 0; t < 4; ++t) {
        double sum = bias.at({d});
        for (std::int64_t c = 0; c < channels; ++c) {
          for (std::int64_t a = 0; a < 4; ++a) {
            // Orientation t holds the filter of orientation a - t, turned t times.
            std::vector<double> filter;
            for (std::int64_t i = 0; i < 2; ++i)
              for (std::int64_t j = 0; j < 2; ++j) filter.push_back(v.at({d, c, (a - t + 4) % 4, 2 * j + i}));
            for (std::int64_t turn = 0; turn < t; ++turn) filter = rotated(filter, 2);
            for (std::int64_t i = 0; i < 2; ++i)
              for (std::int64_t j = 0; j < 2; ++j)
                sum += filter[static_cast<std::size_t>(2 * i + j)] *
                       x.at({0, (top + i) * size + left + j, c * 4 + a});
          }
        }
        y.mutable_data<double>()[(place * outs + d) * 4 + t] = sum;
      }
    }
  }
  const NoGrad no_grad;
  EXPECT_LE(rel_l2((*merging)(Variable(x)).data(), (*norm)(Variable(y)).data()), 1e-12);
}

TEST(Exchange, BadSwinFilesAreNamedInOneLine) {
  const auto error = [](const char* name, const ModelConfig& config, Layout layout, const auto& change) {
    TensorMap file = golden(name).tensors;
    change(file);
    return refusal(file, config, layout);
  };
  const auto swin = [&](const auto& change) { return error("swin", golden_swin(), Layout::timm, change); };
  const auto eq_swin = [&](const auto& change) {
    return error("eq_swin", golden_eq_swin(), Layout::released, change);
  };
  EXPECT_EQ(swin([](auto& file) { file.erase("layers.1.downsample.reduction.weight"); }),
            "no tensor \"layers.1.downsample.reduction.weight\", expected with shape [32, 64] "
            "(swin in layout timm)");
  EXPECT_EQ(swin([](auto& file) {
              file["layers.0.blocks.1.attn.relative_position_bias_table"] = Tensor::ones({169, 2});
            }),
            "tensor \"layers.0.blocks.1.attn.relative_position_bias_table\" has shape [169, 2], "
            "expected [49, 2]");
  EXPECT_EQ(eq_swin([](auto& file) { file.erase("layers.0.downsample.reduction.weight"); }),
            "no tensor \"layers.0.downsample.reduction.weight\", expected with shape [8, 4, 4, 4] "
            "(eq_swin in layout released)");
  EXPECT_EQ(eq_swin([](auto& file) {
              file["layers.0.downsample.reduction.weight"] = Tensor::ones({8, 16, 4});
            }),
            "tensor \"layers.0.downsample.reduction.weight\" has shape [8, 16, 4], expected [8, 4, 4, 4]");
  EXPECT_EQ(eq_swin([](auto& file) { file["layers.1.blocks.0.norm2.bias"] = Tensor::ones({16}); }),
            "tensor \"layers.1.blocks.0.norm2.bias\" has shape [16], expected [32] or [8]");
  EXPECT_EQ(
      eq_swin([](auto& file) {
        file["layers.0.blocks.0.attn.qkv.weights"] = Tensor::ones({12, 4, 1, 4});
      }),
      "tensor \"layers.0.blocks.0.attn.qkv.weights\" has shape [12, 4, 1, 4], expected [12, 1, 4, 4] or "
      "[12, 4, 4]");
}

}  // namespace
}  // namespace gyre::testing
