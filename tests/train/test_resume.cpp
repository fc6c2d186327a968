#include "train/resume.h"

#include <csignal>
#include <thread>

#include "tests/train/run_support.h"
#include "train/run_directory.h"

namespace gyre {
namespace {

using test::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Resume : public test::TrainerTest {};

TEST_F(Resume, ABrokenRunEqualsAnUnbrokenOne) {
  const Config config = this->config();  // 36 updates, 12 per epoch, a line every 5
  const TrainResult whole = train(config, "whole");
  // In the first epoch, between lines, at the end of an epoch, right after it, on a line.
  train(config, "broken", 1);
  for (const std::int64_t steps : {3, 7, 12, 13, 20}) {
    const TrainResult part = resume(config, "broken", steps);
    EXPECT_EQ(part.updates, steps);
    EXPECT_FALSE(part.already_complete);
    EXPECT_EQ(part.test_top1, -1);
  }
  const TrainResult end = resume(config, "broken");
  test::expect_same_run(run_path("whole"), run_path("broken"));
  EXPECT_EQ(end.updates, whole.updates);
  EXPECT_EQ(end.best_epoch, whole.best_epoch);
  EXPECT_EQ(end.best_top1, whole.best_top1);
  EXPECT_EQ(end.last_loss, whole.last_loss);
  EXPECT_EQ(end.test_top1, whole.test_top1);
}

TEST_F(Resume, AlsoWithSgdAndWithoutAveragesOrHoldout) {
  Config config = this->config();
  config.optimizer.name = "sgd";
  config.train.ema_decay = 0;
  config.data.holdout = 0;
  config.model.dropout = 0.1;
  config.train.accumulation = 3;
  config.train.epochs = 2;
  train(config, "whole");
  train(config, "broken", 8);
  resume(config, "broken", 17);
  resume(config, "broken");
  test::expect_same_run(run_path("whole"), run_path("broken"));
}

TEST_F(Resume, GoesBackToTheLastCheckpointAndDropsLaterRecords) {
  // A checkpoint at update 12 and records up to 20, as a killed process leaves them.
  Config config = this->config();
  train(config, "whole");
  train(config, "broken", 12);
  const std::filesystem::path spare = folder_.path() / "spare";
  std::filesystem::copy(
      run_path("broken") / "checkpoints", spare,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  resume(config, "broken", 20);
  std::filesystem::remove_all(run_path("broken") / "checkpoints");
  std::filesystem::rename(spare, run_path("broken") / "checkpoints");
  resume(config, "broken");
  test::expect_same_run(run_path("whole"), run_path("broken"));
}

TEST_F(Resume, StartsAnewWithoutACheckpoint) {
  Config config = this->config();
  train(config, "whole");
  train(config, "broken", 7);
  std::filesystem::remove_all(run_path("broken") / "checkpoints");
  std::filesystem::create_directory(run_path("broken") / "checkpoints");
  resume(config, "broken");
  test::expect_same_run(run_path("whole"), run_path("broken"));
  // And where there is no run at all.
  resume(config, "new");
  test::expect_same_run(run_path("whole"), run_path("new"));
}

TEST_F(Resume, TakesAPathToo) {
  Config config = this->config();
  train(config, "whole");
  config.checkpoint.keep_epochs = true;
  train(config, "broken", 30);
  TrainOptions asked = options("broken");
  asked.out.clear();  // the path says enough
  asked.resume = (run_path("broken") / "checkpoints" / "update-00000012").string();
  const TrainResult result = run_training(config, asked);
  EXPECT_EQ(result.run, run_path("broken"));
  test::expect_same_run(run_path("whole"), run_path("broken"));

  asked.resume = (folder_.path() / "nothing").string();
  EXPECT_THAT(error_of<FileError>([&] { run_training(config, asked); }), HasSubstr("nothing: neither a run"));
}

TEST_F(Resume, SkipsADamagedCheckpoint) {
  Config config = this->config();
  config.checkpoint.keep_epochs = true;
  train(config, "whole");
  train(config, "broken", 30);
  const std::filesystem::path file = run_path("broken") / "checkpoints" / "last" / "optimizer.safetensors";
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] ^= 1;
  write_file(file, bytes);
  testing::internal::CaptureStderr();
  resume(config, "broken");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("skipped"), HasSubstr("optimizer.safetensors")));
  test::expect_same_run(run_path("whole"), run_path("broken"));
}

TEST_F(Resume, DoesNotBeginAnewWhereAllCheckpointsAreDamaged) {
  const Config config = this->config();
  train(config, "broken", 30);
  const std::string metrics = read_file(run_path("broken") / "metrics.jsonl");
  for (const auto& entry : std::filesystem::directory_iterator(run_path("broken") / "checkpoints"))
    if (entry.is_directory() && !entry.is_symlink()) write_file(entry.path() / "model.safetensors", "cut");
  TrainOptions again = options("broken");
  again.resume = "auto";
  EXPECT_THAT(error_of<FileError>([&] { run_training(config, again); }),
              AllOf(HasSubstr("every checkpoint is damaged: "), HasSubstr("start another run with --out")));
  EXPECT_EQ(read_file(run_path("broken") / "metrics.jsonl"), metrics);
}

TEST_F(Resume, ACompleteRunStaysAsItIs) {
  const Config config = this->config();
  const TrainResult first = train(config, "a");
  const auto snapshot = [&] {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run_path("a")))
      if (entry.is_regular_file() && !entry.path().string().ends_with("lock"))
        files.push_back(entry.path().string() + "\n" + read_file(entry.path()));
    std::sort(files.begin(), files.end());
    return files;
  };
  const std::vector<std::string> before = snapshot();
  const TrainResult again = resume(config, "a");
  EXPECT_TRUE(again.already_complete);
  EXPECT_EQ(again.updates, first.updates);
  EXPECT_EQ(again.best_epoch, first.best_epoch);
  EXPECT_EQ(again.best_top1, first.best_top1);
  EXPECT_EQ(again.last_top1, first.last_top1);
  EXPECT_EQ(again.test_top1, first.test_top1);
  EXPECT_EQ(snapshot(), before);
}

TEST_F(Resume, ARunKilledBeforeItsTestIsMeasuredOnly) {
  const Config config = this->config();
  const TrainResult first = train(config, "a");
  const Checkpoint before = last("a");
  const std::vector<nlohmann::json> metrics = test::metrics_of(run_path("a"));
  std::filesystem::remove(run_path("a") / "result.json");
  const TrainResult again = resume(config, "a");
  EXPECT_FALSE(again.already_complete);
  EXPECT_EQ(again.updates, first.updates);
  EXPECT_EQ(again.test_top1, first.test_top1);
  EXPECT_TRUE(test::same_bits(last("a").weights, before.weights));
  EXPECT_EQ(test::metrics_of(run_path("a")), metrics);
  EXPECT_TRUE(std::filesystem::exists(run_path("a") / "result.json"));
}

TEST_F(Resume, RefusesAnotherConfigurationNamingKeyAndValues) {
  const Config config = this->config();
  train(config, "a", 5);
  const auto refusal = [&](const std::function<void(Config&)>& change) {
    Config other = config;
    change(other);
    return error_of<ConfigError>([&] { resume(other, "a"); });
  };
  EXPECT_THAT(refusal([](Config& c) { c.train.batch_size = 30; }),
              AllOf(HasSubstr("train.batch_size: 20"), HasSubstr("30")));
  EXPECT_THAT(refusal([](Config& c) { c.optimizer.learning_rate = 0.5; }),
              AllOf(HasSubstr("optimizer.learning_rate: 0.01"), HasSubstr("0.5")));
  EXPECT_THAT(refusal([](Config& c) { c.model.width = 32; }),
              AllOf(HasSubstr("model.width: 16"), HasSubstr("32")));
  EXPECT_THAT(refusal([](Config& c) { c.data.augment.flip = false; }), HasSubstr("data.augment.flip"));
  EXPECT_THAT(refusal([](Config& c) { c.train.epochs = 4; }),
              AllOf(HasSubstr("train.epochs: 3"), HasSubstr("4")));
  EXPECT_EQ(last("a").state.updates, 5);

  // What changes no more than last digits may change.
  Config other = config;
  other.data.workers = 3;
  other.data.prefetch = 2;
  other.checkpoint.every_epochs = 2;
  other.train.accumulation = 2;
  other.train.deterministic = false;
  EXPECT_EQ(resume(other, "a", 6).updates, 6);
}

TEST_F(Resume, ATimeBudgetBecomesUpdatesOnce) {
  Config config = this->config();
  config.train.time_budget = "8s";
  train(config, "a", 2);
  const std::int64_t updates = RunDirectory::stored_config(run_path("a")).train.updates;
  EXPECT_GT(updates, 2);
  EXPECT_EQ(last("a").config.train.updates, updates);
  TrainOptions asked = options("a", 4);
  asked.resume = "auto";
  asked.json = false;
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_training(config, asked).updates, 4);
  // The number is the run's, although a new measurement would hardly give the same.
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("resuming"), Not(HasSubstr("calibration"))));
  EXPECT_EQ(RunDirectory::stored_config(run_path("a")).train.updates, updates);
  EXPECT_EQ(last("a").config.train.updates, updates);
}

TEST_F(Resume, ASignalSavesAndStops) {
  Config config = this->config();
  config.train.epochs = 100'000;
  config.checkpoint.every_minutes = 1e-9;
  std::atomic<bool> sent = false;
  std::thread sender([&] {
    // The first checkpoint proves that the handlers are in place.
    for (int i = 0; i < 30'000 && !std::filesystem::exists(run_path("a") / "checkpoints" / "last"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    sent = true;
    ::kill(::getpid(), SIGTERM);
  });
  const TrainResult result = train(config, "a");
  sender.join();
  EXPECT_TRUE(sent);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.updates, last("a").state.updates);
  EXPECT_LT(result.updates, 1'200'000);
  EXPECT_FALSE(std::filesystem::exists(run_path("a") / "result.json"));

  const TrainResult more = resume(config, "a", result.updates + 9);
  EXPECT_FALSE(more.interrupted);
  train(config, "b", result.updates + 9);
  test::expect_same_run(run_path("b"), run_path("a"));
}

}  // namespace
}  // namespace gyre
