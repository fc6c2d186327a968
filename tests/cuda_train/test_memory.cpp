#include "core/memory.h"

#include <atomic>
#include <optional>

#include "tests/cuda/device.h"
#include "tests/cuda_train/balloon.h"
#include "tests/train/run_support.h"
#include "train/calibrate.h"
#include "train/evaluate.h"
#include "train/training.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const Device gpu = Device::cuda();

/// Another dataset; asked for the sample number `last`, it takes the device's memory away.
class Greedy : public Dataset {
 public:
  Greedy(std::shared_ptr<const Dataset> dataset, int last) : dataset_(std::move(dataset)), last_(last) {}
  std::int64_t size() const override { return dataset_->size(); }
  Sample get(std::int64_t i) const override {
    if (++asked_ == last_) balloon_.emplace(gpu);
    return dataset_->get(i);
  }
  int channels() const override { return dataset_->channels(); }
  int image_size() const override { return dataset_->image_size(); }
  const std::vector<std::string>& class_names() const override { return dataset_->class_names(); }
  std::string name() const override { return dataset_->name(); }
  void give_back() { balloon_.reset(); }

 private:
  std::shared_ptr<const Dataset> dataset_;
  int last_;
  mutable std::atomic<int> asked_ = 0;
  mutable std::optional<test::Balloon> balloon_;
};

class CudaMemory : public test::TrainerTest {
 protected:
  void SetUp() override {
    if (device_under_test().is_cpu()) GTEST_SKIP() << "CUDA devices alone do this";
    test::write_tiny_data(folder_, 200, 40);
    reset_peak_memory(gpu);
  }

  /// One update takes some megabytes.
  Config config() const {
    Config config = test::tiny_config(folder_.path());
    config.model.width = 64;
    config.train.batch_size = 32;
    config.data.workers = 0;
    config.train.epochs = 2;
    return config;
  }
  TrainOptions options(const std::string& name, std::int64_t max_steps = 0) const {
    TrainOptions options = TrainerTest::options(name, max_steps);
    options.device = gpu;
    return options;
  }
};

TEST_F(CudaMemory, ResultsTellThePeak) {
  Config config = this->config();
  run_training(config, options("warm", 1));
  // What stays, such as the workspace of products, is no part of a run.
  const double before = 1e-6 * static_cast<double>(memory_stats(gpu).active);
  const auto peak = [&](const std::string& name) {
    const TrainResult result = run_training(config, options(name, 1));
    EXPECT_EQ(result.device, gpu);
    return result.peak_device_memory_mb - before;
  };
  const double small = peak("small");
  EXPECT_GT(small, 0.1);
  config.train.batch_size = 128;
  const double large = peak("large");
  EXPECT_GT(large, 2 * small);
  // Parts of a batch, one after the other, take less.
  config.train.accumulation = 4;
  EXPECT_LT(peak("parts"), 0.6 * large);
  TrainOptions here = options("cpu", 1);
  here.device = Device::cpu();
  EXPECT_EQ(run_training(config, here).peak_device_memory_mb, -1);
}

TEST_F(CudaMemory, ShortageSavesWhatWasReached) {
  Config config = this->config();
  config.train.updates = 8;
  const DataSplits plain = open_data(config.data, config.train.seed);
  config.model = fit_model(config.model, *plain.train, plain.preprocessing);
  // While the batch of the fourth update is prepared.
  const auto greedy = std::make_shared<Greedy>(plain.train, 3 * 32 + 1);
  DataSplits splits = plain;
  splits.train = greedy;
  {
    Training training(config, splits, options("short"));
    const auto run = RunDirectory::create(run_path("short"), config, 0);
    const std::string text = test::error_of<OutOfMemoryError>([&] { training.run(*run); });
    EXPECT_THAT(
        text,
        AllOf(ContainsRegex("^cannot allocate [0-9]+ bytes on cuda:0: [0-9]+ bytes in use, [0-9]+ of "),
              HasSubstr(
                  "; update 2 is saved: --resume auto continues, with a larger train.accumulation (now 1) in "
                  "less memory")));
    EXPECT_THAT(read_file(run_path("short") / "log.txt"), HasSubstr(text));
  }
  greedy->give_back();
  EXPECT_EQ(last("short").state.updates, 2);
  TrainOptions again = options("short");
  again.resume = "auto";
  EXPECT_EQ(run_training(config, again).updates, 8);
  run_training(config, options("whole"));
  test::expect_same_run(run_path("short"), run_path("whole"));
  // In parts.
  run_training(config, options("parts", 2));
  again = options("parts");
  again.resume = "auto";
  config.train.accumulation = 4;
  const TrainResult parts = run_training(config, again);
  EXPECT_EQ(parts.updates, 8);
}

TEST_F(CudaMemory, ShortageInEvaluationKeepsTheEpoch) {
  Config config = this->config();
  config.train.updates = 12;
  const DataSplits plain = open_data(config.data, config.train.seed);
  config.model = fit_model(config.model, *plain.train, plain.preprocessing);
  const auto greedy = std::make_shared<Greedy>(plain.holdout, 1);
  DataSplits splits = plain;
  splits.holdout = greedy;
  std::int64_t steps = 0;
  {
    Training training(config, splits, options("short"));
    steps = training.steps_per_epoch();
    const auto run = RunDirectory::create(run_path("short"), config, 0);
    EXPECT_THROW(training.run(*run), OutOfMemoryError);
  }
  greedy->give_back();
  const TrainingState reached = last("short").state;
  EXPECT_EQ(reached.updates, steps);
  EXPECT_EQ(reached.epoch, 1);
  EXPECT_EQ(reached.step, 0);
  TrainOptions again = options("short");
  again.resume = "auto";
  EXPECT_EQ(run_training(config, again).updates, 12);
}

TEST_F(CudaMemory, EvaluationGoesOnInSmallerBatches) {
  Config config = this->config();
  const DataSplits splits = open_data(config.data, config.train.seed);
  config.model = fit_model(config.model, *splits.train, splits.preprocessing);
  Learner learner(config, gpu);
  const auto measure = [&](std::int64_t batch = 40) {
    return evaluate(learner.model(), splits.test, splits.preprocessing, batch, 0);
  };
  // Loads the code of the kernels that smaller batches take.
  for (const std::int64_t batch : {1, 2, 3, 5, 10, 20, 40}) measure(batch);
  reset_peak_memory(gpu);
  const std::size_t before = memory_stats(gpu).active;
  const Accuracy wanted = measure();
  const auto needed = static_cast<std::int64_t>(memory_stats(gpu).peak - before);
  {
    const test::Balloon balloon(gpu, needed / 2);
    const Accuracy got = measure();
    EXPECT_EQ(got.samples, 40);
    EXPECT_EQ(got.top1, wanted.top1);
    EXPECT_NEAR(got.loss, wanted.loss, 1e-5);
  }
  const test::Balloon balloon(gpu);
  EXPECT_THROW(measure(), OutOfMemoryError);
}

TEST_F(CudaMemory, CalibrationMeasuresTheDevice) {
  Config config = this->config();
  const DataSplits splits = open_data(config.data, config.train.seed);
  config.model = fit_model(config.model, *splits.train, splits.preprocessing);
  const std::size_t before = memory_stats(gpu).active;
  const Pace pace = measure_pace(config, splits, gpu);
  EXPECT_GT(memory_stats(gpu).peak, before);
  EXPECT_GT(pace.update, 0);
  EXPECT_GT(pace.spent, 20 * pace.update);
}

TEST_F(CudaMemory, ShortageAtOnceLeavesNoCheckpoint) {
  const test::Balloon balloon(gpu);
  EXPECT_THAT(test::error_of<OutOfMemoryError>([&] { run_training(config(), options("none")); }),
              HasSubstr("cannot allocate "));
  TrainOptions dry = options("none");
  dry.dry_run = true;
  EXPECT_THAT(test::error_of<OutOfMemoryError>([&] { run_training(config(), dry); }),
              HasSubstr("cannot allocate "));
  EXPECT_FALSE(std::filesystem::exists(run_path("none") / "checkpoints" / "last"));
}

}  // namespace
}  // namespace gyre
