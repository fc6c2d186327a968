#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "tests/cli/program.h"
#include "tests/train/run_support.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class Kill : public ::testing::Test {
 protected:
  Kill() {
    test::write_tiny_data(folder_);
    Config config = test::tiny_config(folder_.path());
    config.train.epochs = 12;                // 144 updates
    config.checkpoint.every_minutes = 1e-9;  // after each of them
    config_ = folder_.write("tiny.yaml", config_to_yaml(config)).string();
  }

  fs::path run_path(const std::string& name) const { return folder_.path() / "runs" / name; }
  std::vector<std::string> train(const std::string& name) const {
    return {"train",    config_,    "--out", run_path(name).string(), "--threads", "2",
            "--no-pin", "--resume", "auto"};
  }

  static bool has_leftovers(const fs::path& checkpoints) {
    std::error_code gone;
    for (auto entry = fs::directory_iterator(checkpoints, gone); entry != fs::directory_iterator();
         entry.increment(gone))
      if (entry->path().filename().string().starts_with(".")) return true;
    return false;
  }
  /// Updates of the newest checkpoint, by its name; -1: none.
  static std::int64_t newest(const fs::path& checkpoints) {
    std::error_code gone;
    const std::string name = fs::read_symlink(checkpoints / "last", gone).string();
    if (gone) return -1;
    std::int64_t updates = -1;
    std::from_chars(name.data() + name.find("-") + 1, name.data() + name.size(), updates);
    return updates;
  }
  /// Looks often until `seen` or half a minute is over.
  static bool watch(const std::function<bool()>& seen) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!seen()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return true;
  }

  test::TempFolder folder_;
  std::string config_;
};

TEST_F(Kill, AKilledRunEqualsAnUnbrokenOne) {
  const Outcome whole = run_gyre(train("whole"));
  ASSERT_EQ(whole.code, 0) << whole.err;

  const fs::path run = run_path("killed"), checkpoints = run / "checkpoints";
  RandomStream stream(11, Purpose::test);
  int kills = 0, torn = 0;
  const auto kill_when = [&](const std::function<bool()>& seen, std::uint64_t microseconds) {
    Program program(train("killed"));
    EXPECT_TRUE(watch(seen));
    if (microseconds > 0) std::this_thread::sleep_for(std::chrono::microseconds(stream.below(microseconds)));
    program.signal(SIGKILL);
    const Outcome outcome = program.wait();
    EXPECT_THAT(outcome.code, testing::AnyOf(0, 128 + SIGKILL)) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    kills += outcome.code == 128 + SIGKILL;
    torn += has_leftovers(checkpoints);
  };
  kill_when([&] { return fs::exists(run); }, 0);
  kill_when([&] { return fs::exists(run / "config.yaml"); }, 2000);
  for (std::int64_t i = 0; i < 9; ++i) {
    const std::int64_t updates = 6 + 12 * i;
    kill_when([&] { return newest(checkpoints) >= updates; }, 20'000);
    // Within the writing of a checkpoint.
    kill_when([&] { return newest(checkpoints) >= updates + 6 && has_leftovers(checkpoints); }, 300);
  }
  EXPECT_GE(kills, 18);  // of 20; a run may end before its signal comes
  EXPECT_GE(torn, 5);

  const Outcome end = run_gyre(train("killed"));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.err, Not(HasSubstr("skipped")));  // whole or not at all
  test::expect_same_run(run_path("whole"), run);
  EXPECT_FALSE(has_leftovers(checkpoints));
}

TEST_F(Kill, AnInterruptSavesAndResumesToTheSame) {
  ASSERT_EQ(run_gyre(train("whole")).code, 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = fmt::format("signal{}", signal);
    Program program(train(name));
    EXPECT_TRUE(watch([&] { return newest(run_path(name) / "checkpoints") >= 5; }));
    program.signal(signal);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("interrupted after update"));
    const Outcome rest = run_gyre(train(name));
    EXPECT_EQ(rest.code, 0) << rest.err;
    test::expect_same_run(run_path("whole"), run_path(name));
  }
}

TEST_F(Kill, OneRunIsWrittenByOneProcess) {
  std::vector<std::string> words = train("a");
  words.insert(words.end(), {"--set", "train.epochs=100000"});
  Program first(words);
  EXPECT_TRUE(watch([&] { return newest(run_path("a") / "checkpoints") >= 2; }));
  const Outcome second = run_gyre(words);
  first.signal(SIGKILL);
  first.wait();
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, HasSubstr(run_path("a").string()));
}

}  // namespace
}  // namespace gyre
