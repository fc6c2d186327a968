#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/counting.h"
#include "tests/cli/program.h"

namespace gyre {
namespace {

using nlohmann::json;
using testing::HasSubstr;

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

TEST(ModelsCommand, LayersShowTheTree) {
  const Outcome outcome = run_gyre({"models", "eq_vit", "--layers", "--set", "model.depth=1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("EqLinear"));
  EXPECT_THAT(outcome.out, HasSubstr("qkv"));
}

TEST(ModelsCommand, UnknownNameIsWrongUse) {
  const Outcome outcome = run_gyre({"models", "eq_vti"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("eq_vti"));
  EXPECT_THAT(outcome.err, HasSubstr("did you mean"));
}

}  // namespace
}  // namespace gyre
