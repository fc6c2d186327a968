#include "tests/train/run_support.h"
#include "train/banner.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Device gpu = Device::cuda();

class AmpRun : public test::TrainerTest {
 protected:
  void SetUp() override { test::write_tiny_data(folder_, 64, 40); }

  /// Six updates per epoch, two epochs, a record of each update.
  Config config(const std::string& amp) const {
    Config config = test::tiny_config(folder_.path());
    config.model.backend = "flash";
    config.data.holdout = 16;
    config.train.batch_size = 8;
    config.train.epochs = 2;
    config.train.log_every = 1;
    config.train.amp = amp;
    return config;
  }
  TrainResult run(const std::string& amp, const std::string& name, std::int64_t max_steps = 0,
                  bool resume = false, Device device = gpu) const {
    TrainOptions asked = options(name, max_steps);
    asked.device = device;
    if (resume) asked.resume = "auto";
    return run_training(config(amp), asked);
  }
  /// The records of single updates.
  std::vector<nlohmann::json> steps_of(const std::string& name) const {
    std::vector<nlohmann::json> steps;
    for (const nlohmann::json& line : test::metrics_of(run_path(name)))
      if (line["kind"] == "step") steps.push_back(line);
    return steps;
  }
  std::string log_of(const std::string& name) const { return read_file(run_path(name) / "log.txt"); }
};

TEST_F(AmpRun, TrainsNearF32) {
  const TrainResult plain = run("off", "off");
  for (const char* amp : {"bf16", "fp16"}) {
    const TrainResult result = run(amp, amp);
    EXPECT_EQ(result.updates, 12);
    EXPECT_NEAR(result.last_loss, plain.last_loss, 0.05);
    EXPECT_NE(result.last_loss, plain.last_loss);
    for (const auto& [name, tensor] : last(amp).weights) EXPECT_EQ(tensor.dtype(), DType::f32) << name;
  }
  for (const nlohmann::json& step : steps_of("fp16")) {
    EXPECT_EQ(step["skipped"], 0);
    EXPECT_EQ(step["loss_scale"], 65536);
  }
  for (const char* name : {"off", "bf16"})
    for (const nlohmann::json& step : steps_of(name)) EXPECT_FALSE(step.contains("loss_scale"));
  EXPECT_THAT(log_of("fp16"), HasSubstr("  scale 65536  "));
  EXPECT_THAT(log_of("fp16"), Not(HasSubstr("skipped")));
  EXPECT_EQ(last("fp16").state.loss_scale, 65536);
  EXPECT_EQ(last("fp16").state.scale_updates, 12);
  EXPECT_EQ(last("bf16").state.loss_scale, 0);
}

TEST_F(AmpRun, ResumesBitForBit) {
  for (const std::string amp : {"bf16", "fp16"}) {
    run(amp, amp + " whole");
    run(amp, amp + " parts", 4);
    run(amp, amp + " parts", 9, true);
    run(amp, amp + " parts", 0, true);
    test::expect_same_run(run_path(amp + " whole"), run_path(amp + " parts"));
    EXPECT_EQ(last(amp + " parts").state.loss_scale, last(amp + " whole").state.loss_scale);
    EXPECT_EQ(last(amp + " parts").state.scale_updates, last(amp + " whole").state.scale_updates);
  }
}

TEST_F(AmpRun, SkippedBatchesMoveNothingButThePlaceInTheEpoch) {
  run("fp16", "whole");
  run("fp16", "bent", 2);
  // A scale that no gradient bears.
  Checkpoint checkpoint = last("bent");
  checkpoint.state.loss_scale = 0x1p30;
  checkpoint.state.scale_updates = 1999;
  std::filesystem::remove_all(checkpoint.path);
  write_checkpoint(checkpoint.path, checkpoint);
  run("fp16", "bent", 0, true);

  const Checkpoint end = last("bent");
  EXPECT_EQ(end.state.updates, 12);
  EXPECT_EQ(end.state.ema_updates, 12);
  EXPECT_EQ(end.optimizer.at("updates").item(), 12);
  EXPECT_GE(end.state.skipped, 5);
  EXPECT_EQ(end.state.loss_scale, std::ldexp(0x1p30, -static_cast<int>(end.state.skipped)));
  EXPECT_LE(end.state.scale_updates, 10);
  EXPECT_EQ(end.state.epoch * 6 + end.state.step, 12 + end.state.skipped);
  const auto straight = steps_of("whole"), bent = steps_of("bent");
  ASSERT_EQ(bent.size(), straight.size());
  for (std::size_t i = 0; i < bent.size(); ++i) {
    EXPECT_EQ(bent[i]["update"], straight[i]["update"]);
    EXPECT_EQ(bent[i]["learning_rate"], straight[i]["learning_rate"]);
    EXPECT_EQ(bent[i]["skipped"] > 0, i >= 2);
  }
  EXPECT_EQ(bent.back()["skipped"], end.state.skipped);
  EXPECT_THAT(log_of("bent"), HasSubstr("gradients overflow: skipped, loss scale 536870912 from now on"));
  EXPECT_THAT(log_of("bent"), HasSubstr(fmt::format("  skipped {}", end.state.skipped)));
}

TEST_F(AmpRun, StopsWhenNoScaleHelps) {
  Config config = this->config("fp16");
  config.data.std = {1e-6};  // pixels beyond f16
  config.train.bad_steps = 3;
  TrainOptions asked = options("a");
  asked.device = gpu;
  EXPECT_THAT(test::error_of<Error>([&] { run_training(config, asked); }), HasSubstr("3 batches in a row"));
}

TEST_F(AmpRun, TheCpuRefusesItBeforeAnythingIsWritten) {
  EXPECT_EQ(
      test::error_of<ConfigError>([&] { run("fp16", "a", 0, false, Device::cpu()); }),
      "train.amp: fp16 computes on CUDA devices only, not on cpu; choose one with --device cuda, or set "
      "train.amp: off");
  EXPECT_FALSE(std::filesystem::exists(run_path("a")));
}

TEST_F(AmpRun, ContinuesOnTheCpuWithoutIt) {
  run("fp16", "a", 4);
  const TrainResult result = run("off", "a", 0, true, Device::cpu());
  EXPECT_EQ(result.updates, 12);
  EXPECT_EQ(last("a").state.loss_scale, 0);
}

TEST_F(AmpRun, TheBannerNamesIt) {
  const auto precision = [&](const std::string& amp) {
    Config config = this->config(amp);
    config.train.updates = 12;
    const DataSplits splits = open_data(config.data, config.train.seed);
    config.model = fit_model(config.model, *splits.train, splits.preprocessing);
    Learner learner(config, gpu);
    return banner(config, splits, learner, 6, gpu);
  };
  EXPECT_THAT(precision("fp16"), HasSubstr("\nprecision    amp fp16, loss scale 65536\n"));
  EXPECT_THAT(precision("bf16"), HasSubstr("\nprecision    amp bf16\n"));
  EXPECT_THAT(precision("bf16"), HasSubstr("flash6_cublas"));
  EXPECT_THAT(precision("off"), Not(HasSubstr("\nprecision")));
}

}  // namespace
}  // namespace gyre
