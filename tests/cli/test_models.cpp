#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/counting.h"
#include "tests/cli/program.h"

namespace gyre {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(ModelsCommand, JsonHoldsEveryModelWithItsCounts) {
  const Outcome outcome = run_gyre({"models", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const json models = json::parse(outcome.out).at("models");
  ASSERT_EQ(models.size(), model_names().size());
  for (std::size_t i = 0; i < models.size(); ++i) {
    ModelConfig config;
    config.name = model_names()[i];
    const ModelCounts counts = count_model(config);
    EXPECT_EQ(models[i].size(), 6u);
    EXPECT_EQ(models[i].at("name"), config.name);
    EXPECT_EQ(models[i].at("params"), counts.parameters);
    EXPECT_DOUBLE_EQ(models[i].at("linear_gflops"), static_cast<double>(counts.linear_flops) * 1e-9);
    EXPECT_DOUBLE_EQ(models[i].at("total_gflops"), static_cast<double>(counts.total_flops) * 1e-9);
    EXPECT_DOUBLE_EQ(models[i].at("executed_gflops"), static_cast<double>(counts.executed_flops) * 1e-9);
    EXPECT_EQ(models[i].at("exact"), counts.exact);
  }
}

TEST(ModelsCommand, TableNamesEveryModel) {
  const Outcome outcome = run_gyre({"models"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string_view name : model_names())
    EXPECT_THAT(outcome.out, HasSubstr("\n" + std::string(name) + " "));
  EXPECT_THAT(outcome.out, HasSubstr(" GF"));
}

TEST(ModelsCommand, TakesNamesFilesAndOverrides) {
  const TemporaryFolder folder;
  const std::string file = folder.write("m.yaml", "model: {name: vit, depth: 2}\n");
  const Outcome outcome = run_gyre({"models", "eq_vit", file, "--set", "model.depth=1", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json models = json::parse(outcome.out).at("models");
  ASSERT_EQ(models.size(), 2u);
  ModelConfig config;
  config.depth = 1;
  EXPECT_EQ(models[0].at("params"), count_model(config).parameters);
  config.name = "vit";
  EXPECT_EQ(models[1].at("params"), count_model(config).parameters);
}

TEST(ModelsCommand, NamesShowTheirLayers) {
  const Outcome outcome = run_gyre({"models", "eq_vit", "--set", "model.depth=3"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("\n  blocks.0 … 2 +EqBlock +12,496"));
  EXPECT_THAT(outcome.out,
              ContainsRegex("\n      qkv +EqLinear +3,120 +16 to 48 per element, c4 +weight .48, 16, 4., "
                            "bias .48."));
  EXPECT_THAT(outcome.out, Not(HasSubstr("blocks.1")));
  const Outcome swin = run_gyre({"models", "eq_swin"});
  ASSERT_EQ(swin.code, 0) << swin.err;
  EXPECT_THAT(swin.out, ContainsRegex("\n  layers.0.blocks.1 +EqBlock"));
  EXPECT_THAT(swin.out, HasSubstr("relative_position_bias_table [49, 2]"));
  EXPECT_THAT(swin.out, HasSubstr("window 4, shift 2"));
  EXPECT_THAT(swin.out, ContainsRegex("\n  layers.1.downsample +EqPatchMerging"));
}

TEST(ModelsCommand, TableShowsThePaperAndTheSymmetry) {
  const Outcome outcome = run_gyre({"models"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("\nvit_t +21.704 +8.374 +9.205 +9.205 +none\n"));
  EXPECT_THAT(outcome.out, ContainsRegex("\neq_vit_h +157.715 +93.396 +100.140 +[0-9.]+ +c4 exact\n"));
  EXPECT_THAT(outcome.out, ContainsRegex("\nswin_l +195.149 +68.018 +68.991 +[0-9.]+ +none\n"));
  EXPECT_THAT(outcome.out,
              ContainsRegex("\neq_swin_h_w7 +163.916 +[0-9.]+ +90.841 +[0-9.]+ +c4 approximate\n"));
  EXPECT_THAT(outcome.out, ContainsRegex("\neq_swin_t +[0-9. ]+ +c4 exact\n"));
}

TEST(ModelsCommand, UnknownNameIsWrongUse) {
  const Outcome outcome = run_gyre({"models", "eq_vti"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("eq_vti"));
  EXPECT_THAT(outcome.err, HasSubstr("did you mean"));
}

}  // namespace
}  // namespace gyre
