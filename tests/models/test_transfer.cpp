#include "models/transfer.h"

#include <algorithm>

#include "layers/equivariance.h"
#include "models/resample.h"
#include "tests/models/model_testing.h"

namespace gyre {
namespace {

using testing::error_of;
using testing::images_for;
using testing::rel_l2;
using testing::small_config;

std::vector<std::string> names_of(const std::vector<TakenTensor>& tensors) {
  std::vector<std::string> names;
  for (const TakenTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

/// The same model on 12 × 12 images: a 6 × 6 grid instead of 4 × 4.
ModelConfig larger(ModelConfig config) {
  config.image_size = 12;
  return config;
}

TEST(Transfer, SameSizesKeepEverything) {
  const ModelConfig config = small_config("eq_vit", "c4", "token");
  const auto parent = make_model(config, 1), child = make_model(config, 2);
  const Transfer transfer = transfer_weights(*child, config, parent->state(), false);
  EXPECT_EQ(transfer.kept.size(), child->parameters().size());
  EXPECT_TRUE(transfer.resampled.empty());
  EXPECT_TRUE(transfer.initialised.empty());
  for (const auto& [name, tensor] : child->state())
    EXPECT_EQ(tensor.to_vector(), parent->state().at(name).to_vector()) << name;
}

TEST(Transfer, NewHeadIsTheWholeHeadAndStaysInitialised) {
  const ModelConfig config = small_config("eq_vit", "c4");
  ModelConfig fewer = config;
  fewer.classes = 3;
  const auto parent = make_model(config, 1), child = make_model(fewer, 2);
  const std::vector<double> own = testing::parameter(*child, "head.weight").data().to_vector();
  const Transfer transfer = transfer_weights(*child, config, parent->state(), true);
  EXPECT_EQ(names_of(transfer.initialised), (std::vector<std::string>{"head.weight", "head.bias"}));
  EXPECT_EQ(transfer.initialised[0].from, Shape({5, 8}));
  EXPECT_EQ(transfer.initialised[0].to, Shape({3, 8}));
  EXPECT_EQ(testing::parameter(*child, "head.weight").data().to_vector(), own);
  EXPECT_EQ(transfer.kept.size() + 2, child->parameters().size());
  // Imported weights may lack a head.
  TensorMap headless = parent->state();
  headless.erase("head.weight");
  headless.erase("head.bias");
  EXPECT_EQ(transfer_weights(*child, config, headless, true).initialised.size(), 2u);
}

struct Flavour {
  const char* name;
  const char* group;
  const char* pool;
  const char* pos_embed;
};

class TransferPositions : public ::testing::TestWithParam<Flavour> {
 protected:
  ModelConfig config_ =
      small_config(GetParam().name, GetParam().group, GetParam().pool, GetParam().pos_embed);
};

TEST_P(TransferPositions, LargerImageResamplesTheTableAlone) {
  const auto parent = make_model(config_, 1), child = make_model(larger(config_), 2);
  const Transfer transfer = transfer_weights(*child, config_, parent->state(), false);
  ASSERT_EQ(names_of(transfer.resampled), std::vector<std::string>{"pos_embed"});
  EXPECT_EQ(transfer.kept.size() + 1, child->parameters().size());
  EXPECT_EQ(transfer.resampled[0].from, parent->state().at("pos_embed").shape());
  EXPECT_EQ(transfer.resampled[0].to, child->state().at("pos_embed").shape());
  // Back on the old grid the table is nearly what it was: the new one is finer.
  const auto back = make_model(config_, 3);
  transfer_weights(*back, larger(config_), child->state(), false);
  const Tensor before = parent->state().at("pos_embed"), after = back->state().at("pos_embed");
  EXPECT_LT(rel_l2(after, before), 0.75);
  EXPECT_GT(rel_l2(make_model(config_, 4)->state().at("pos_embed"), before), 0.9);
}

TEST_P(TransferPositions, SymmetrySurvives) {
  const auto parent = make_model(config_, 1), child = make_model(larger(config_), 2);
  transfer_weights(*child, config_, parent->state(), false);
  child->to(DType::f64);
  const auto errors = check_equivariance(*child, group_of(config_), images_for(larger(config_), 2),
                                         Meaning::image(), Meaning::invariant());
  EXPECT_LT(worst_nmae(errors), 1e-10);
}

INSTANTIATE_TEST_SUITE_P(
    Flavours, TransferPositions,
    ::testing::Values(Flavour{"vit", "c1", "token", "full"}, Flavour{"vit", "c1", "mean", "full"},
                      Flavour{"eq_vit", "c4", "token", "full"}, Flavour{"eq_vit", "c4", "token", "quarter"},
                      Flavour{"eq_vit", "d4", "mean", "quarter"}, Flavour{"eq_vit", "d4", "mean", "full"},
                      Flavour{"eq_vit", "c2", "mean", "quarter"},
                      Flavour{"eq_vit", "mirror", "token", "quarter"}),
    [](const auto& test) {
      return fmt::format("{}_{}_{}_{}", test.param.name, test.param.group, test.param.pool,
                         test.param.pos_embed);
    });

TEST(TransferPositions, ClassTokenKeepsItsPosition) {
  const ModelConfig config = small_config("vit", "c1", "token");
  const auto parent = make_model(config, 1), child = make_model(larger(config), 2);
  transfer_weights(*child, config, parent->state(), false);
  const Tensor before = parent->state().at("pos_embed"), after = child->state().at("pos_embed");
  EXPECT_EQ(after.slice(1, 0, 1).to_vector(), before.slice(1, 0, 1).to_vector());
  const Tensor square = before.slice(1, 1, 17).reshape({4, 4, 32});
  EXPECT_EQ(after.slice(1, 1, 37).to_vector(), resample_square(square, 6).to_vector());
}

TEST(TransferPositions, QuarterTableIsThatOfTheWholeSquare) {
  // c4 stores the top-left quarter: cell (i, j) stands for its four turns.
  const ModelConfig config = small_config("eq_vit", "c4", "mean", "quarter");
  const auto parent = make_model(config, 1), child = make_model(larger(config), 2);
  transfer_weights(*child, config, parent->state(), false);
  const Tensor table = parent->state().at("pos_embed");
  Tensor square = Tensor::empty({4, 4, 8});
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 2; ++j)
      for (const auto& [row, col] :
           {std::pair{i, j}, std::pair{3 - j, i}, std::pair{3 - i, 3 - j}, std::pair{j, 3 - i}})
        square.select(0, row).select(0, col).copy_(table.select(0, 2 * i + j));
  const Tensor expected = resample_square(square, 6).slice(0, 0, 3).slice(1, 0, 3).reshape({9, 8});
  EXPECT_LT(rel_l2(child->state().at("pos_embed"), expected), 1e-6);
}

TEST(TransferOffsets, AnotherWindowResamplesTheRelativeTables) {
  for (const char* name : {"swin", "eq_swin"}) {
    const ModelConfig config = testing::small_swin(name, name[0] == 'e' ? "c4" : "c1");
    ModelConfig wider = config;
    wider.window = 8;
    wider.image_size = 32;
    const auto parent = make_model(config, 1), child = make_model(wider, 2);
    for (const auto& [own, parameter] : parent->parameters())
      if (own.ends_with("table"))
        parameter->variable.set_data(testing::random(parameter->variable.shape(), 3).to(DType::f32));
    const Transfer transfer = transfer_weights(*child, config, parent->state(), false);
    EXPECT_EQ(names_of(transfer.resampled),
              (std::vector<std::string>{"layers.0.blocks.0.attn.relative_position_bias_table",
                                        "layers.0.blocks.1.attn.relative_position_bias_table",
                                        "layers.1.blocks.0.attn.relative_position_bias_table"}));
    EXPECT_EQ(transfer.resampled[0].from, Shape({49, 2}));
    EXPECT_EQ(transfer.resampled[0].to, Shape({225, 2}));
    const std::string first = transfer.resampled[0].name;
    const Tensor square = parent->state().at(first).reshape({7, 7, 2});
    EXPECT_EQ(child->state().at(first).to_vector(), resample_square(square, 15).to_vector());
    child->to(DType::f64);
    EXPECT_LT(worst_nmae(check_equivariance(*child, group_of(wider), images_for(wider, 1), Meaning::image(),
                                            Meaning::invariant())),
              1e-10);
  }
}

TEST(TransferOffsets, LargerImagesWithTheSameWindowKeepEverything) {
  const ModelConfig config = testing::small_swin("eq_swin", "c4");
  ModelConfig wider = config;
  wider.image_size = 32;
  const auto parent = make_model(config, 1), child = make_model(wider, 2);
  EXPECT_TRUE(transfer_weights(*child, config, parent->state(), false).resampled.empty());
}

TEST(Transfer, RefusesWhatDoesNotFit) {
  const ModelConfig config = small_config("eq_vit", "c4");
  const auto model = make_model(config, 1);
  const std::vector<double> before = testing::parameter(*model, "norm.weight").data().to_vector();
  const auto error_with = [&](const TensorMap& weights) {
    return error_of([&] { transfer_weights(*model, config, weights, false); });
  };
  TensorMap weights = make_model(config, 2)->state();
  weights["norm.weight"] = Tensor::full({8}, 3);
  TensorMap missing = weights, unknown = weights, wrong = weights, classes = weights;
  missing.erase("norm.bias");
  EXPECT_EQ(error_with(missing), "weights lack the tensor norm.bias");
  unknown["extra"] = Tensor::zeros({1});
  EXPECT_EQ(error_with(unknown), "weights have the tensor extra, which the model lacks");
  wrong["pos_embed"] = Tensor::zeros({5, 5, 8});
  EXPECT_EQ(error_with(wrong), "weights have pos_embed with shape [5, 5, 8], the model needs [4, 4, 8]");
  classes["head.weight"] = Tensor::zeros({7, 8});
  EXPECT_EQ(error_with(classes), "weights have head.weight with shape [7, 8], the model needs [5, 8]");
  EXPECT_EQ(testing::parameter(*model, "norm.weight").data().to_vector(), before) << "nothing was changed";
}

}  // namespace
}  // namespace gyre
