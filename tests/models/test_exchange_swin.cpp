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

}  // namespace
}  // namespace gyre::testing
