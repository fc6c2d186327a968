#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "tests/cli/program.h"
#include "tests/train/support.h"
#include "train/trainer.h"

namespace gyre {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class FinetuneCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_tiny_data(folder_);
    Config config = test::tiny_config(folder_.path());
    config.train.updates = 12;
    TrainOptions options;
    options.out = parent_ = (folder_.path() / "parent").string();
    options.json = true;
    run_training(config, options);
    yaml_ = folder_
                .write("half.yaml",
                       fmt::format("data: {{dataset: idx, path: {}, pad_to: 0, holdout: 30, select: [1, "
                                   "3], workers: 1}}\ntrain: {{updates: 6, batch_size: 20}}\n",
                                   folder_.path().string()))
                .string();
  }
  Outcome finetune(std::vector<std::string> arguments, const std::string& out = "child") const {
    arguments.insert(arguments.begin(),
                     {"finetune", parent_, yaml_, "--out", (folder_.path() / out).string()});
    return run_gyre(arguments);
  }

  test::TempFolder folder_;
  std::string parent_, yaml_;
};

TEST_F(FinetuneCommand, ListsWhatIsNotKept) {
  const Outcome outcome = finetune({});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("parent       " + parent_));
  EXPECT_THAT(outcome.out,
              HasSubstr(": eq_vit, 4 classes, 8 px, 12 updates\n             kept 29 tensors, "));
  EXPECT_THAT(outcome.out,
              HasSubstr("; resampled 0; new 2\n             new head.weight [4, 4] to [2, 4]\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("kept pos_embed")));
  const Outcome verbose = finetune({"--verbose"}, "verbose");
  EXPECT_THAT(verbose.out, HasSubstr("\n             kept pos_embed [2, 2, 4]\n"));
  // What came out is a checkpoint like any other.
  const Outcome eval = run_gyre({"eval", (folder_.path() / "child").string(), "--json"});
  EXPECT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(json::parse(eval.out).at("model"), "eq_vit");
}

TEST_F(FinetuneCommand, JsonTellsParentAndTransfer) {
  const Outcome outcome = finetune({"--json", "--max-steps", "3"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const json object = json::parse(outcome.out);
  EXPECT_THAT(object.at("parent").get<std::string>(), HasSubstr("/checkpoints/update-"));
  EXPECT_EQ(object.at("transfer"),
            json::parse(R"({"kept": 29, "resampled": [], "new": ["head.weight", "head.bias"]})"));
  const Outcome resumed = finetune({"--json", "--resume"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(json::parse(resumed.out).at("steps"), 6);
  EXPECT_EQ(json::parse(resumed.out).at("parent"), object.at("parent"));
  const Outcome again = finetune({"--json", "--resume"});
  EXPECT_EQ(json::parse(again.out).at("steps"), 6);
  EXPECT_EQ(json::parse(again.out).at("parent"), object.at("parent"));
}

TEST_F(FinetuneCommand, OtherNormalisationIsToldOnce) {
  EXPECT_EQ(finetune({"--dry-run"}).err, "");
  const Outcome outcome = finetune({"--dry-run", "--set", "data.mean=[0.25]"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, ::testing::StartsWith(
                               "gyre: warning: images are normalised by mean 0.25, std 0.5, but " + parent_));
}

TEST_F(FinetuneCommand, WrongUse) {
  const Outcome group = finetune({"--set", "model.group=d4"});
  EXPECT_EQ(group.code, 2);
  EXPECT_THAT(group.err, HasSubstr("model.group: d4, but "));
  EXPECT_THAT(group.err, HasSubstr(" has c4; leave it out"));
  const Outcome size = finetune({"--set", "data.image_size=10"});
  EXPECT_EQ(size.code, 1);
  EXPECT_THAT(size.err, HasSubstr("image sizes: 8, 12"));
  EXPECT_EQ(run_gyre({"finetune", parent_}).code, 2);
  EXPECT_EQ(run_gyre({"finetune", parent_ + "x", yaml_}).code, 1);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "child"));
}

/// Top-1 on the test set at the end of a run.
double top1_of(const std::string& command, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.emplace_back("--json");
  const Outcome outcome = run_gyre(words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? json::parse(outcome.out).at("test").at("top1").get<double>() : -1;
}

TEST(FinetuneOnFashionMnist, BeatsTrainingFromScratchAtEqualSteps) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const test::TempFolder folder;
  const auto yaml = [&](const std::string& name, const std::string& data, int updates, bool model) {
    return folder
        .write(name, fmt::format(
                         "{}data: {{dataset: fashion_mnist, limit_test: 2000, holdout: 500{}}}\n"
                         "train: {{updates: {}, batch_size: 32, ema_decay: 0.9}}\n",
                         model ? "model: {name: eq_vit, patch_size: 8, width: 32, depth: 2, heads: 2}\n" : "",
                         data, updates))
        .string();
  };
  const auto out = [&](const std::string& name) { return (folder.path() / name).string(); };
  top1_of("train", {yaml("p.yaml", "", 1500, true), "--out", out("parent")});
  const std::string five = ", select: [0, 2, 4, 6, 8]", larger = ", image_size: 42, pad_to: 48";
  for (const auto& [name, data] : {std::pair("classes", five), std::pair("size", larger)}) {
    const double tuned =
        top1_of("finetune", {out("parent"), yaml("f.yaml", data, 150, false), "--out", out(name)});
    const double scratch =
        top1_of("train", {yaml("s.yaml", data, 150, true), "--out", out(std::string(name) + "_s")});
    EXPECT_GT(tuned, scratch + 5) << name;
  }
}

}  // namespace
}  // namespace gyre
