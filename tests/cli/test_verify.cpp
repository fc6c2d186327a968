#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/file.h"
#include "tests/cli/program.h"
#include "tests/train/support.h"
#include "train/trainer.h"

namespace gyre {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::vector<std::string> small{"--set", "model.depth=1", "--set", "model.image_size=16", "--samples",
                                     "2"};

Outcome verify(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "verify");
  return run_gyre(arguments);
}

std::vector<std::string> with(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(VerifyCommand, TableShowsEveryTensorAndScope) {
  const Outcome outcome = verify(with({"eq_vit"}, small));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* row :
       {"\nY ", "\ndX ", "\ndW ", "\ndb ", "\nEqPatchEmbed ", "\nEqPositionTable ", "\nEqAttention ",
        "\nEqBlock ", "\nmodel            turn 270 ", "\noutside          mirror ", "\npass\n"})
    EXPECT_THAT(outcome.out, HasSubstr(row));
  EXPECT_THAT(outcome.out, ::testing::Not(HasSubstr("FAIL")));
}

TEST(VerifyCommand, JsonHoldsTheSameRows) {
  const Outcome outcome = verify(with({"eq_vit", "--set", "model.group=d4", "--json"}, small));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const json object = json::parse(outcome.out);
  EXPECT_EQ(object.at("model"), "eq_vit");
  EXPECT_EQ(object.at("group"), "d4");
  EXPECT_EQ(object.at("samples"), 2);
  EXPECT_EQ(object.at("pass"), true);
  std::set<std::string> tensors, elements;
  for (const json& row : object.at("exactness")) {
    for (const char* key : {"rel_l2", "max_abs", "mean_abs", "p99_rel"})
      EXPECT_TRUE(row.at(key).is_number()) << key;
    tensors.insert(row.at("tensor").get<std::string>() + " " + row.at("dtype").get<std::string>());
  }
  EXPECT_EQ(tensors.size(), 8u);
  for (const json& row : object.at("equivariance")) {
    EXPECT_EQ(row.at("pass"), true) << row;
    EXPECT_TRUE(row.at("nmae").is_number() && row.at("rel_l2").is_number());
    if (row.at("scope") == "model" && row.at("dtype") == "f64") elements.insert(row.at("element"));
  }
  EXPECT_EQ(elements.size(), 7u);
}

TEST(VerifyCommand, ModelWithoutSymmetryFailsWithItsFigure) {
  const Outcome outcome = verify(with({"vit", "--json"}, small));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "");
  const json object = json::parse(outcome.out);
  EXPECT_EQ(object.at("pass"), false);
  for (const json& row : object.at("equivariance")) {
    EXPECT_EQ(row.at("pass").get<bool>(), row.at("scope") == "outside");
    EXPECT_GT(row.at("nmae").get<double>(), 0.1);
  }
}

TEST(VerifyCommand, TakesCheckpointsRunsAndFiles) {
  const test::TempFolder folder;
  test::write_tiny_data(folder);
  Config config = test::tiny_config(folder.path());
  config.train.updates = 6;
  const std::string run = (folder.path() / "run").string();
  TrainOptions options;
  options.out = run;
  options.json = true;
  run_training(config, options);
  const Outcome outcome = verify({run, "--weights", "raw", "--backend", "naive", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const json object = json::parse(outcome.out);
  EXPECT_EQ(object.at("backend"), "naive");
  EXPECT_THAT(object.at("weights").get<std::string>(), HasSubstr("(raw weights)"));

  const std::string yaml = folder.write("m.yaml", "model: {name: eq_vit, depth: 1, group: c2}\n").string();
  const Outcome from_file = verify({yaml, "--samples", "1", "--json"});
  EXPECT_EQ(from_file.code, 0) << from_file.err;
  EXPECT_EQ(json::parse(from_file.out).at("group"), "c2");

  const Outcome fixed = verify({run, "--set", "model.depth=2"});
  EXPECT_EQ(fixed.code, 2);
  EXPECT_THAT(fixed.err, HasSubstr("is a checkpoint, whose model is fixed"));

  const std::string weights = run + "/checkpoints/last/model.safetensors";
  write_file(weights, read_file(weights).substr(0, 1000));
  const Outcome damaged = verify({run + "/checkpoints/last"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("model.safetensors: truncated: 1000 bytes, expected"));
}

TEST(VerifyCommand, WrongUse) {
  const Outcome unknown = verify({"eq_vit_x"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("unknown model \"eq_vit_x\", did you mean \"eq_vit_t\"?"));
  const Outcome missing = verify({"runs/none"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("runs/none: does not exist"));
  const Outcome size = verify({"eq_vit", "--set", "model.image_size=30"});
  EXPECT_EQ(size.code, 2);
  EXPECT_THAT(size.err, HasSubstr("30x30 image with patch 8 leaves a remainder of 6"));
  EXPECT_EQ(verify({"eq_vit", "--samples", "65"}).code, 2);
  EXPECT_EQ(verify({}).code, 2);
}

}  // namespace
}  // namespace gyre
