#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "tests/cli/program.h"
#include "tests/train/support.h"

namespace gyre {
namespace {

using nlohmann::json;
using ::testing::UnorderedElementsAre;

std::vector<std::string> keys(const json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

/// One JSON object on standard output, nothing else anywhere.
json parsed(const std::vector<std::string>& arguments) {
  const Outcome outcome = run_gyre(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const json object = json::parse(outcome.out, nullptr, false);
  EXPECT_TRUE(object.is_object()) << outcome.out;
  return object;
}

TEST(Json, EveryCommandPrintsItsKeys) {
  const test::TempFolder folder;
  test::write_tiny_data(folder);
  Config config = test::tiny_config(folder.path());
  config.train.epochs = 1;
  const std::string yaml = folder.write("tiny.yaml", config_to_yaml(config)).string();
  const std::string run = (folder.path() / "run").string();
  const std::string picture = folder.write("a.pgm", "P5\n8 8\n255\n" + test::random_bytes(64, 1)).string();

  const json train = parsed({"train", yaml, "--out", run, "--json"});
  EXPECT_THAT(keys(train),
              UnorderedElementsAre("run", "complete", "steps", "epochs", "best", "last", "test", "tune_table",
                                   "images_per_s", "peak_memory_mb", "device", "peak_device_memory_mb"));
  EXPECT_EQ(train.at("device"), "cpu");
  EXPECT_TRUE(train.at("peak_device_memory_mb").is_null());
  EXPECT_EQ(train.at("complete"), true);
  EXPECT_THAT(keys(train.at("best")), UnorderedElementsAre("epoch", "top1"));
  EXPECT_THAT(keys(train.at("last")), UnorderedElementsAre("loss", "top1"));
  EXPECT_EQ(train.at("run"), run);
  EXPECT_EQ(train.at("steps"), 12);
  EXPECT_EQ(train.at("epochs"), 1);
  EXPECT_EQ(train.at("best").at("epoch"), 0);
  EXPECT_TRUE(train.at("test").at("top1").is_number());

  // A run that is already complete says the same.
  json again = parsed({"train", yaml, "--out", run, "--resume", "auto", "--json"});
  EXPECT_EQ(again, train);

  const json eval = parsed({"eval", run, "--rotations", "--json"});
  EXPECT_THAT(keys(eval), UnorderedElementsAre("model", "checkpoint", "weights", "split", "backend",
                                               "kernels", "device", "images_per_s", "peak_device_memory_mb",
                                               "samples", "loss", "top1", "top5", "rotations"));
  EXPECT_EQ(eval.at("top1"), train.at("test").at("top1"));
  EXPECT_EQ(eval.at("samples"), 100);
  EXPECT_EQ(eval.at("device"), "cpu");
  EXPECT_GT(eval.at("images_per_s"), 0);
  EXPECT_EQ(eval.at("top5"), 100);
  for (const json& turn : eval.at("rotations"))
    EXPECT_THAT(keys(turn), UnorderedElementsAre("degrees", "top1", "loss", "max_logit_change"));
  EXPECT_TRUE(parsed({"eval", run, "--json"}).at("rotations").empty());

  const json predict = parsed({"predict", run, picture, "--json"});
  EXPECT_THAT(keys(predict), UnorderedElementsAre("predictions"));
  ASSERT_EQ(predict.at("predictions").size(), 1u);
  const json& prediction = predict.at("predictions")[0];
  EXPECT_THAT(keys(prediction), UnorderedElementsAre("file", "classes"));
  ASSERT_EQ(prediction.at("classes").size(), 4u);
  for (const json& c : prediction.at("classes"))
    EXPECT_THAT(keys(c), UnorderedElementsAre("index", "name", "probability"));
}

constexpr auto machine_keys = [] {
  return UnorderedElementsAre("cpu", "threads", "pinned", "simd", "peak_gflops", "bandwidth_gbs",
                              "dense_library", "tune_table", "highway", "compiler");
};

TEST(Json, BenchOfModelsPrintsItsKeys) {
  const test::TempFolder folder;
  test::write_tiny_data(folder);
  const std::string yaml =
      folder.write("tiny.yaml", config_to_yaml(test::tiny_config(folder.path()))).string();
  for (const char* command : {"train", "model"}) {
    const json bench = parsed({"bench", command, yaml, "--rounds", "2", "--seconds", "0.01", "--json"});
    EXPECT_THAT(keys(bench),
                UnorderedElementsAre("machine", "device", "model", "images", "batch", "runs", "results"));
    EXPECT_THAT(keys(bench.at("machine")), machine_keys());
    EXPECT_EQ(bench.at("images"), folder.path().string());
    EXPECT_EQ(bench.at("batch"), 20);
    ASSERT_EQ(bench.at("results").size(), 3u);
    for (const json& row : bench.at("results"))
      EXPECT_THAT(keys(row), UnorderedElementsAre("impl", "kernels", "images_per_s", "ms_per_step", "ms_min",
                                                  "ms_max", "ms_spread", "linear_share", "ratio_to_standard",
                                                  "ratio_to_naive", "peak_memory_mb"));
  }
  const json more =
      parsed({"bench",    "train", "--model",       "vit",    "--image-size", "16",     "--batch",
              "4",        "--set", "model.depth=1", "--impl", "flash",        "--runs", "2",
              "--rounds", "1",     "--seconds",     "0.01",   "--profile",    "--json"});
  EXPECT_EQ(more.at("model"), "vit");
  EXPECT_EQ(more.at("images"), "random");
  EXPECT_EQ(more.at("batch"), 4);
  ASSERT_EQ(more.at("results").size(), 2u);
  const json& flash = more.at("results")[1];
  EXPECT_TRUE(flash.at("ratio_to_naive").is_null());
  EXPECT_TRUE(flash.at("best_ratio_to_naive").is_null());
  EXPECT_GE(flash.at("best_ratio_to_standard"), flash.at("ratio_to_standard"));
  ASSERT_FALSE(flash.at("profile").empty());
  for (const json& entry : flash.at("profile"))
    EXPECT_THAT(keys(entry), UnorderedElementsAre("op", "calls_per_step", "ms_per_step"));
}

TEST(Json, BenchOfLayersPrintsItsKeys) {
  const json bench =
      parsed({"bench", "op", "--group", "c2,c4", "--channels", "3,8", "--rows", "20", "--direction",
              "forward,dw", "--runs", "2", "--rounds", "2", "--seconds", "0.001", "--json"});
  EXPECT_THAT(keys(bench), UnorderedElementsAre("machine", "runs", "results"));
  EXPECT_THAT(keys(bench.at("machine")), machine_keys());
  ASSERT_EQ(bench.at("results").size(), 2u * 2 * 2 * 3);
  std::vector<std::string> expected{"op",
                                    "group",
                                    "impl",
                                    "kernel",
                                    "direction",
                                    "channels_in",
                                    "channels_out",
                                    "rows",
                                    "threads",
                                    "dtype",
                                    "ms_min",
                                    "ms_max",
                                    "ms_median",
                                    "ms_spread",
                                    "peak_fraction",
                                    "gflops",
                                    "rel_l2",
                                    "ratio_to_standard",
                                    "best_ratio_to_standard"};
  for (const json& row : bench.at("results")) {
    std::vector<std::string> own = expected;
    if (row.at("direction") == "forward") {
      own.push_back("rel_l2_y");
    } else {
      own.insert(own.end(), {"rel_l2_dw", "rel_l2_db"});
    }
    EXPECT_THAT(keys(row), testing::UnorderedElementsAreArray(own));
    EXPECT_EQ(row.at("rows"), 20);
    EXPECT_EQ(row.at("dtype"), "f32");
    EXPECT_TRUE(row.at("rel_l2").is_number());
  }
  EXPECT_EQ(bench.at("results")[0].at("group"), "c2");
  EXPECT_EQ(bench.at("results")[23].at("channels_in"), 8);
}

TEST(Json, ConfigurationHasTypedValues) {
  const json config =
      parsed({"config", "--json", "--set", "data.path=a \"b\"", "--set", "data.mean=[0.5, .25]"});
  EXPECT_THAT(keys(config), UnorderedElementsAre("model", "data", "optimizer", "schedule", "train",
                                                 "checkpoint", "finetune"));
  EXPECT_EQ(config.at("train").at("epochs"), 10);
  EXPECT_EQ(config.at("train").at("time_budget"), "");
  EXPECT_EQ(config.at("optimizer").at("nesterov"), false);
  EXPECT_EQ(config.at("data").at("path"), "a \"b\"");
  EXPECT_EQ(config.at("data").at("mean"), json::parse("[0.5, 0.25]"));
  EXPECT_EQ(config.at("data").at("augment").at("flip"), false);
}

TEST(Json, FailuresPrintOneLineAndNoJson) {
  const test::TempFolder folder;
  test::write_tiny_data(folder);
  Config config = test::tiny_config(folder.path());
  config.train.batch_size = 1000;
  const std::string large = folder.write("large.yaml", config_to_yaml(config)).string();
  config.data.path = (folder.path() / "nowhere").string();
  const std::string lost = folder.write("lost.yaml", config_to_yaml(config)).string();
  for (const auto& [yaml, code] : {std::pair(large, 2), std::pair(lost, 1)}) {
    const Outcome outcome = run_gyre({"train", yaml, "--out", (folder.path() / "run").string(), "--json"});
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, testing::StartsWith("gyre: error: "));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "run"));
}

}  // namespace
}  // namespace gyre
