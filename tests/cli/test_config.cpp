#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "train/config.h"

namespace gyre {
namespace {

using testing::HasSubstr;

std::string config_error(const TemporaryFolder& folder, const std::string& yaml,
                         const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"train", folder.write("x.yaml", yaml), "--out", folder / "run"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_gyre(arguments);
  EXPECT_EQ(outcome.code, 2) << yaml << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  return outcome.err;
}

TEST(ConfigCommand, ListsEveryKeyAsYaml) {
  const Outcome outcome = run_gyre({"config"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(config_to_yaml(parse_config(outcome.out, "listing")), config_to_yaml(Config{}));
}

TEST(ConfigCommand, PrintsTheEffectiveConfiguration) {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("a.yaml", "train:\n  epochs: 3\noptimizer:\n  learning_rate: 1.0e-4\n");
  const Outcome outcome =
      run_gyre({"config", "--set", "train.seed=7", file, "--set", "data.mean=[0.5, .25]"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("  epochs: 3\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  learning_rate: 0.0001\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  seed: 7\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  mean: [0.5, 0.25]\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  weight_decay: 0.05\n"));
}

TEST(ConfigCommand, DecimalCommaLocaleChangesNothing) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.yaml", "optimizer:\n  weight_decay: 0.5\n");
  const Outcome plain = run_gyre({"config", file, "--set", "schedule.warmup=0.25"});
  const Outcome german = run_gyre({"config", file, "--set", "schedule.warmup=0.25"},
                                  {{"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}});
  EXPECT_THAT(german.out, HasSubstr("weight_decay: 0.5\n"));
  EXPECT_THAT(german.out, HasSubstr("warmup: 0.25\n"));
  EXPECT_EQ(german.out, plain.out);
}

TEST(ConfigErrors, AreCodeTwoWithFileAndLine) {
  const TemporaryFolder folder;
  const std::string file = folder / "x.yaml";
  const auto line = [&](const std::string& rest) { return "gyre: error: " + file + rest + "\n"; };
  EXPECT_EQ(config_error(folder, "optimizer:\n  lerning_rate: 1\n"),
            line(":2: unknown key optimizer.lerning_rate, did you mean learning_rate?"));
  EXPECT_EQ(config_error(folder, "train:\n  epochs: 1\n  seed: 2\n  epochs: 1\n"),
            line(":4: key epochs is already set in line 2"));
  EXPECT_EQ(config_error(folder, "train:\n  batch_size: 0\n"),
            line(":2: train.batch_size: 0 is out of range [1, 65536]"));
  EXPECT_EQ(config_error(folder, ""), line(":1: the file holds no configuration"));
  EXPECT_THAT(config_error(folder, "train: [\n"), HasSubstr(file + ":"));
  EXPECT_THAT(config_error(folder, "model:\n  width: 30\n"),
              HasSubstr("model.width 30 is not a multiple of 4"));
  EXPECT_THAT(config_error(folder, "train:\n  epochs: 1\n", {"--set", "model.width=66"}),
              testing::StartsWith("gyre: error: with --set: model.width 66 "));
  EXPECT_EQ(config_error(folder, "train:\n  epochs: 1\n", {"--set", "train.epochs=x"}),
            "gyre: error: --set train.epochs=x: train.epochs: 'x' is not a whole number\n");
  EXPECT_EQ(config_error(folder, "train:\n  epochs: 1\n", {"--set", "optimizer.betal=0.5"}),
            "gyre: error: --set optimizer.betal=0.5: unknown key optimizer.betal, did you mean beta1?\n");
}

TEST(ConfigErrors, MissingFileOrFolderIsCodeTwo) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder / "nothing.yaml", folder / ""}) {
    const Outcome outcome = run_gyre({"train", path});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(path));
  }
}

}  // namespace
}  // namespace gyre
