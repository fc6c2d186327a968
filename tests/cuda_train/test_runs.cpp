#include "tests/cuda/device.h"
#include "tests/train/run_support.h"
#include "train/evaluate.h"

namespace gyre {
namespace {

const Device gpu = device_under_test();

class CudaRun : public test::TrainerTest {
 protected:
  void SetUp() override { test::write_tiny_data(folder_, 64, 40); }

  /// Six updates per epoch, two epochs.
  Config config() const {
    Config config = test::tiny_config(folder_.path());
    config.model.backend = "flash";
    config.data.holdout = 16;
    config.train.batch_size = 8;
    config.train.epochs = 2;
    return config;
  }
  TrainResult run(Device device, const std::string& name, std::int64_t max_steps = 0,
                  bool resume = false) const {
    TrainOptions asked = options(name, max_steps);
    asked.device = device;
    if (resume) asked.resume = "auto";
    return run_training(config(), asked);
  }
  EvalOptions eval_of(const std::string& name, Device device) const {
    EvalOptions asked;
    asked.checkpoint = run_path(name);
    asked.progress = false;
    asked.device = device;
    asked.workers = 1;
    return asked;
  }
};

/// Norm of the difference, relative to the norm of `expected`, over all tensors.
double distance(const TensorMap& actual, const TensorMap& expected) {
  double difference = 0, size = 0;
  for (const auto& [name, tensor] : expected) {
    const std::vector<double> a = actual.at(name).to_vector(), b = tensor.to_vector();
    for (std::size_t i = 0; i < b.size(); ++i) {
      difference += (a[i] - b[i]) * (a[i] - b[i]);
      size += b[i] * b[i];
    }
  }
  return std::sqrt(difference / size);
}

TEST_F(CudaRun, MatchesTheCpuAndRepeats) {
  const TrainResult here = run(Device::cpu(), "cpu"), there = run(gpu, "cuda"), again = run(gpu, "again");
  EXPECT_EQ(there.updates, 12);
  EXPECT_NEAR(there.last_loss, here.last_loss, 1e-2);
  EXPECT_LT(distance(last("cuda").weights, last("cpu").weights), 1e-2);
  EXPECT_LT(distance(last("cuda").ema, last("cpu").ema), 1e-2);
  test::expect_same_run(run_path("cuda"), run_path("again"));
  EXPECT_EQ(again.test_top1, there.test_top1);
}

TEST_F(CudaRun, ResumesWhereItStoodOnTheOtherDevice) {
  if (gpu.is_cpu()) GTEST_SKIP() << "there is no other device";
  run(Device::cpu(), "whole");
  for (const auto& [first, second] : {std::pair(Device::cpu(), gpu), {gpu, Device::cpu()}}) {
    const std::string name = fmt::format("from {}", first);
    // In the middle of an epoch.
    run(first, name, 4);
    const Checkpoint before = last(name);
    EXPECT_EQ(before.state.updates, 4);
    // Moved, nothing is left to do: all is written again as it was read.
    run(second, name, 4, true);
    const Checkpoint moved = last(name);
    EXPECT_TRUE(test::same_bits(moved.weights, before.weights));
    EXPECT_TRUE(test::same_bits(moved.ema, before.ema));
    EXPECT_TRUE(test::same_bits(moved.optimizer, before.optimizer));
    const TrainResult result = run(second, name, 0, true);
    EXPECT_EQ(result.updates, 12);
    EXPECT_LT(distance(last(name).weights, last("whole").weights), 1e-2);
  }
}

TEST_F(CudaRun, ResumesBitForBitOnTheSameDevice) {
  run(gpu, "whole");
  run(gpu, "parts", 4);
  run(gpu, "parts", 9, true);
  run(gpu, "parts", 0, true);
  test::expect_same_run(run_path("whole"), run_path("parts"));
}

TEST_F(CudaRun, EvaluatesAsOnTheCpu) {
  run(gpu, "a");
  EvalOptions asked = eval_of("a", Device::cpu());
  asked.rotations = asked.mirrors = true;
  const EvalResult here = evaluate_checkpoint(asked);
  asked.device = gpu;
  const EvalResult there = evaluate_checkpoint(asked);
  EXPECT_EQ(there.accuracy.top1, here.accuracy.top1);
  EXPECT_NEAR(there.accuracy.loss, here.accuracy.loss, 1e-4);
  ASSERT_EQ(there.rotations.size(), 8U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(there.rotations[i].accuracy.top1, there.accuracy.top1);
    EXPECT_LT(there.rotations[i].max_logit_change, 1e-4);
  }
  EXPECT_EQ(there.kernels == here.kernels, gpu.is_cpu());
}

}  // namespace
}  // namespace gyre
