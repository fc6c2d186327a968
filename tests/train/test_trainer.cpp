#include "train/trainer.h"

#include <thread>

#include "core/deterministic.h"
#include "core/memory.h"
#include "tests/train/run_support.h"
#include "train/evaluate.h"

namespace gyre {
namespace {

using test::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Trainer : public test::TrainerTest {
 protected:
  /// Every file below the runs folder.
  std::vector<std::string> written() const {
    std::vector<std::string> files;
    if (!std::filesystem::exists(run_path(""))) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run_path("")))
      files.push_back(entry.path().string());
    return files;
  }
};

TEST_F(Trainer, LearnsAndRecords) {
  Config config = this->config();
  config.train.epochs = 8;
  const TrainResult result = train(config, "a");
  EXPECT_EQ(result.updates, 96);
  EXPECT_EQ(result.epochs, 8);
  EXPECT_FALSE(result.interrupted);
  EXPECT_FALSE(result.already_complete);
  EXPECT_GT(result.images_per_s, 0);
  EXPECT_GT(result.peak_memory_mb, 0);
  // Chance is 25 %.
  EXPECT_GT(result.last_top1, 60);
  EXPECT_GE(result.best_top1, result.last_top1);
  EXPECT_GT(result.test_top1, 60);

  std::vector<double> train_losses, step_losses;
  for (const nlohmann::json& line : test::metrics_of(run_path("a"))) {
    if (line.at("kind") == "epoch") train_losses.push_back(line.at("train_loss"));
    if (line.at("kind") == "step") {
      step_losses.push_back(line.at("loss"));
      EXPECT_EQ(line.at("update").get<std::int64_t>() % config.train.log_every, 0);
      EXPECT_GT(line.at("grad_norm"), 0);
    }
  }
  ASSERT_EQ(train_losses.size(), 8u);
  EXPECT_EQ(step_losses.size(), 19u);
  EXPECT_NEAR(train_losses.front(), std::log(4.0), 0.3);
  EXPECT_LT(train_losses.back(), 0.75 * train_losses.front());
  EXPECT_EQ(result.last_loss, train_losses.back());

  const nlohmann::json summary = nlohmann::json::parse(read_file(run_path("a") / "result.json"));
  EXPECT_EQ(summary.at("updates"), 96);
  EXPECT_EQ(summary.at("test").at("top1"), result.test_top1);
  EXPECT_EQ(summary.at("test").at("samples"), 100);
}

TEST_F(Trainer, TheBestCheckpointIsTheOneThatWasMeasured) {
  Config config = this->config();
  config.train.epochs = 5;
  const TrainResult result = train(config, "a");
  EvalOptions asked;
  asked.checkpoint = run_path("a") / "checkpoints" / "best";
  asked.progress = false;
  EXPECT_EQ(evaluate_checkpoint(asked).accuracy.top1, result.test_top1);
  asked.split = "holdout";
  const EvalResult holdout = evaluate_checkpoint(asked);
  EXPECT_EQ(holdout.accuracy.samples, 60);
  EXPECT_EQ(holdout.accuracy.top1, result.best_top1);
  EXPECT_EQ(holdout.weights, "ema");
  EXPECT_EQ(read_checkpoint(asked.checkpoint).state.best_epoch, result.best_epoch);
}

TEST_F(Trainer, WithoutHoldoutTheTestSetChooses) {
  Config config = this->config();
  config.data.holdout = 0;
  config.train.epochs = 2;
  const TrainResult result = train(config, "a");
  EXPECT_EQ(result.updates, 30);
  EXPECT_EQ(result.best_top1, result.test_top1);
}

TEST_F(Trainer, WorkersChangeNothing) {
  Config config = this->config();
  config.train.epochs = 2;
  for (const int workers : {0, 1, 2, 8}) {
    config.data.workers = workers;
    config.data.prefetch = workers + 1;
    train(config, fmt::format("{}", workers));
  }
  for (const char* workers : {"1", "2", "8"}) test::expect_same_run(run_path("0"), run_path(workers));
}

TEST_F(Trainer, SaysWhetherKernelsMayBeChosenBySpeed) {
  Config config = this->config();
  config.train.deterministic = false;
  train(config, "a", 1);
  EXPECT_FALSE(deterministic());
  config.train.deterministic = true;
  train(config, "b", 1);
  EXPECT_TRUE(deterministic());
}

TEST_F(Trainer, TheSeedMatters) {
  Config config = this->config();
  config.train.epochs = 1;
  train(config, "a");
  config.train.seed = 8;
  train(config, "b");
  EXPECT_FALSE(test::same_bits(last("a").weights, last("b").weights));
}

TEST_F(Trainer, EvaluatesAsOftenAsAsked) {
  Config config = this->config();
  config.train.epochs = 5;
  config.train.eval_every = 2;
  const TrainResult result = train(config, "a");
  std::vector<double> epochs;
  for (const nlohmann::json& line : test::metrics_of(run_path("a")))
    if (line.at("kind") == "epoch") epochs.push_back(line.at("epoch"));
  EXPECT_THAT(epochs, testing::ElementsAre(1, 3, 4));
  EXPECT_GE(result.best_epoch, 1);
}

TEST_F(Trainer, ADryRunWritesNothing) {
  TrainOptions asked = options("a");
  asked.dry_run = true;
  const TrainResult result = run_training(config(), asked);
  EXPECT_NEAR(result.last_loss, std::log(4.0), 0.5);
  EXPECT_TRUE(written().empty());
}

TEST_F(Trainer, ARunIsNotOverwritten) {
  Config config = this->config();
  train(config, "a", 3);
  const TensorMap before = test::copy_of(last("a").weights);
  EXPECT_THAT(error_of<FileError>([&] { train(config, "a"); }),
              AllOf(HasSubstr("--resume"), HasSubstr("--out")));
  EXPECT_TRUE(test::same_bits(last("a").weights, before));
  EXPECT_EQ(last("a").state.updates, 3);
}

TEST_F(Trainer, RefusesToResumeAnotherRunThanOut) {
  Config config = this->config();
  train(config, "a", 3);
  TrainOptions asked = options("b");
  asked.resume = run_path("a").string();
  EXPECT_THAT(error_of<ConfigError>([&] { run_training(config, asked); }),
              AllOf(HasSubstr("--out"), HasSubstr("--resume")));
}

TEST_F(Trainer, RefusesABatchLargerThanTheDataBeforeWriting) {
  Config config = this->config();
  config.train.batch_size = 241;
  EXPECT_THAT(error_of<ConfigError>([&] { train(config, "a"); }),
              AllOf(HasSubstr("train.batch_size"), HasSubstr("240 samples"), HasSubstr("batch 241"),
                    HasSubstr("0 steps")));
  EXPECT_TRUE(written().empty());
  config.train.batch_size = 240;
  EXPECT_EQ(train(config, "a", 2).updates, 2);
}

TEST_F(Trainer, RefusesOtherSizesThanTheDataBeforeWriting) {
  Config config = this->config();
  config.model.classes = 9;
  config.model.given.insert("classes");
  EXPECT_THAT(error_of<ConfigError>([&] { train(config, "a"); }), HasSubstr("model.classes: 9"));
  EXPECT_TRUE(written().empty());
}

TEST_F(Trainer, StopsAfterBadStepsAndKeepsTheLastGoodCheckpoint) {
  // Coupled decay far above stability: weights grow ten-thousandfold per update.
  Config config = this->config();
  config.optimizer.name = "sgd";
  config.optimizer.learning_rate = 100;
  config.optimizer.weight_decay = 100;
  config.schedule.warmup = 0;
  config.train.clip_norm = 0;
  config.train.bad_steps = 4;
  config.checkpoint.every_minutes = 1e-9;
  const std::string text = error_of<Error>([&] { train(config, "a"); });
  const Checkpoint kept = last("a");
  EXPECT_GE(kept.state.updates, 1);
  EXPECT_THAT(text,
              AllOf(HasSubstr("4 batches in a row"), HasSubstr(fmt::format("update {}", kept.state.updates)),
                    HasSubstr("last good checkpoint")));
  // Skipped batches moved neither averages nor moments.
  EXPECT_EQ(kept.state.ema_updates, kept.state.updates);
  EXPECT_EQ(kept.optimizer.at("updates").item(), static_cast<double>(kept.state.updates));
  EXPECT_EQ(kept.state.step, kept.state.updates + kept.state.skipped);
  for (const auto& [name, tensor] : kept.weights)
    for (const double value : tensor.to_vector()) ASSERT_TRUE(std::isfinite(value)) << name;
  EXPECT_FALSE(std::filesystem::exists(run_path("a") / "result.json"));
}

TEST_F(Trainer, StopsWhenNoBatchIsFinite) {
  Config config = this->config();
  config.data.std = {1e-45};    // pixels become infinite
  config.train.bad_steps = 20;  // more than an epoch has
  EXPECT_THAT(error_of<Error>([&] { train(config, "a"); }), HasSubstr("20 batches in a row"));
}

TEST_F(Trainer, MemoryStaysFlat) {
  Config config = this->config();
  config.train.epochs = 10;
  TrainOptions asked = options("a");
  std::vector<double> resident;  // by evaluated epochs
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (!std::filesystem::exists(run_path("a") / "summary.csv")) continue;
      const std::size_t rows = test::count_lines(run_path("a") / "summary.csv");
      while (resident.size() + 1 < rows) resident.push_back(resident_mb());
    }
  });
  run_training(config, asked);
  const double after = resident_mb();
  done = true;
  watcher.join();
  resident.push_back(after);
  ASSERT_GE(resident.size(), 3u);
  EXPECT_LT(resident.back(), resident[std::min<std::size_t>(1, resident.size() - 2)] + 5);
}

}  // namespace
}  // namespace gyre
