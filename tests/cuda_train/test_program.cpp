#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/cuda/runtime.h"
#include "tests/cli/program.h"
#include "tests/cuda/device.h"
#include "tests/train/support.h"

namespace gyre {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A tiny configuration, and one run of it.
class CudaProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_under_test().is_cpu()) GTEST_SKIP() << "CUDA devices alone do this";
    if (!std::filesystem::exists(GYRE_PROGRAM))
      GTEST_SKIP() << "the program does not stand where it was built";
    test::write_tiny_data(folder_, 64, 40);
    Config config = test::tiny_config(folder_.path());
    config.model.backend = "flash";
    config.data.holdout = 16;
    config.train.batch_size = 8;
    config.train.epochs = 1;
    yaml_ = folder_.write("tiny.yaml", config_to_yaml(config)).string();
    run_ = (folder_.path() / "run").string();
  }

  static json parsed(const std::vector<std::string>& arguments) {
    const Outcome outcome = run_gyre(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return json::parse(outcome.out, nullptr, false);
  }

  test::TempFolder folder_;
  std::string yaml_, run_;
};

TEST_F(CudaProgram, EveryCommandTakesTheDevice) {
  const json train = parsed({"train", yaml_, "--out", run_, "--device", "cuda", "--json"});
  EXPECT_EQ(train.at("device"), "cuda:0");
  EXPECT_EQ(train.at("complete"), true);
  EXPECT_GT(train.at("peak_device_memory_mb"), 0);
  const json result = json::parse(read_file(run_ + "/result.json"));
  EXPECT_EQ(result.at("device"), "cuda:0");
  EXPECT_EQ(result.at("peak_device_memory_mb"), train.at("peak_device_memory_mb"));
  const json kernels = json::parse(read_file(run_ + "/kernels.json"));
  EXPECT_EQ(kernels.at("device"), cuda::device_info(0).name);
  EXPECT_THAT(kernels.at("kernels")[0].get<std::string>(), StartsWith("flash5_"));
  EXPECT_TRUE(kernels.at("tune_table").is_null());

  const json there = parsed({"eval", run_, "--device", "cuda:0", "--json"});
  EXPECT_EQ(there.at("device"), "cuda:0");
  EXPECT_EQ(there.at("kernels"), kernels.at("kernels"));
  EXPECT_EQ(there.at("top1"), train.at("test").at("top1"));
  const json here = parsed({"eval", run_, "--device", "cpu", "--json"});
  EXPECT_EQ(here.at("device"), "cpu");
  EXPECT_EQ(here.at("top1"), there.at("top1"));
  EXPECT_TRUE(here.at("peak_device_memory_mb").is_null());

  const std::string picture = folder_.write("a.pgm", "P5\n8 8\n255\n" + test::random_bytes(64, 1)).string();
  const json seen = parsed({"predict", run_, picture, "--device", "cuda", "--json"});
  const json wanted = parsed({"predict", run_, picture, "--device", "cpu", "--json"});
  for (std::size_t i = 0; i < 4; ++i) {
    const json& a = seen.at("predictions")[0].at("classes")[i];
    const json& b = wanted.at("predictions")[0].at("classes")[i];
    EXPECT_EQ(a.at("index"), b.at("index"));
    EXPECT_NEAR(a.at("probability").get<double>(), b.at("probability").get<double>(), 1e-5);
  }

  const std::string tuned = (folder_.path() / "tuned").string();
  const json finetuned = parsed({"finetune", run_, yaml_, "--out", tuned, "--device", "cuda", "--json"});
  EXPECT_EQ(finetuned.at("device"), "cuda:0");
  EXPECT_GT(finetuned.at("transfer").at("kept"), 10);
  EXPECT_EQ(parsed({"verify", run_, "--samples", "1", "--device", "cuda", "--json"}).at("pass"), true);
}

TEST_F(CudaProgram, BenchesOnTheDevice) {
  for (const char* command : {"train", "model"}) {
    const json bench = parsed({"bench", command, yaml_, "--rounds", "1", "--seconds", "0.01", "--profile",
                               "--device", "cuda", "--json"});
    EXPECT_EQ(bench.at("device"), "cuda:0");
    ASSERT_EQ(bench.at("results").size(), 3U);
    const auto kernel = [&](std::size_t row) {
      return bench.at("results")[row].at("kernels")[0].get<std::string>();
    };
    EXPECT_THAT(kernel(1), StartsWith("naive_"));
    EXPECT_THAT(kernel(2), StartsWith("flash5_"));
    for (const json& row : bench.at("results")) {
      EXPECT_GT(row.at("images_per_s"), 0);
      EXPECT_GT(row.at("peak_memory_mb"), 0);
      EXPECT_GT(row.at("linear_share"), 0);
    }
  }
}

TEST_F(CudaProgram, TheBannerAndTheLogNameTheDevice) {
  const Outcome outcome = run_gyre({"train", yaml_, "--out", run_, "--device", "cuda"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nmachine      " + describe(Device::cuda())));
  EXPECT_THAT(outcome.out, HasSubstr("\nkernels      flash5_"));
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex(" mem [0-9.]+ MB, device [0-9.]+ [kM]B\n"));
  const Outcome eval = run_gyre({"eval", run_, "--device", "cuda"});
  EXPECT_THAT(eval.out, HasSubstr("\ndevice         " + describe(Device::cuda()) + ", "));
}

TEST_F(CudaProgram, ARunThatMovesSaysSo) {
  ASSERT_EQ(run_gyre({"train", yaml_, "--out", run_, "--device", "cuda", "--max-steps", "2"}).code, 0);
  const Outcome moved = run_gyre({"train", yaml_, "--out", run_, "--device", "cpu", "--resume", "--json"});
  ASSERT_EQ(moved.code, 0) << moved.err;
  EXPECT_THAT(moved.err, StartsWith("gyre: warning: " + run_ + ": kernels were chosen by the fixed rule on " +
                                    cuda::device_info(0).name + ", now by the fixed rule on cpu: results"));
  EXPECT_EQ(json::parse(moved.out).at("steps"), 6);
}

TEST_F(CudaProgram, ADeviceBeyondTheLastIsAFailure) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"train", yaml_}, {"eval", run_}, {"bench", "model", yaml_}, {"verify", "eq_vit"}}) {
    std::vector<std::string> arguments = words;
    arguments.insert(arguments.end(), {"--device", "cuda:63"});
    const Outcome outcome = run_gyre(arguments);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, StartsWith("gyre: error: device 'cuda:63' is not available: "));
  }
}

}  // namespace
}  // namespace gyre
