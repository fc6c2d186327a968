#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <set>

#include "core/file.h"
#include "tests/data/support.h"
#include "tests/train/checkpoint_support.h"
#include "train/checkpoint.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::same;
using test::small_checkpoint;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class CheckpointStoreTest : public testing::Test {
 protected:
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(store_.folder()))
      all.insert(entry.path().filename().string());
    return all;
  }
  std::string link(const std::string& name) const {
    return fs::read_symlink(store_.folder() / name).string();
  }
  void damage(const std::string& name) const {
    const fs::path file = store_.folder() / name / "model.safetensors";
    std::string bytes = read_file(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_file(file, bytes);
  }

  TempFolder folder_;
  CheckpointStore store_{folder_.path() / "run" / "checkpoints"};
};

TEST_F(CheckpointStoreTest, KeepsWhatTheLinksName) {
  EXPECT_FALSE(store_.newest().has_value());
  store_.save(small_checkpoint(1), true);
  EXPECT_THAT(names(), ElementsAre("best", "last", "update-00000001"));
  store_.save(small_checkpoint(2), false);
  store_.save(small_checkpoint(3), false);
  EXPECT_THAT(names(), ElementsAre("best", "last", "update-00000001", "update-00000003"));
  EXPECT_EQ(link("best"), "update-00000001");
  EXPECT_EQ(link("last"), "update-00000003");
  EXPECT_EQ(read_checkpoint(store_.folder() / "best").state.updates, 1);
  store_.save(small_checkpoint(123456789), true);
  EXPECT_THAT(names(), ElementsAre("best", "last", "update-123456789"));
  EXPECT_EQ(store_.newest(), store_.folder() / "update-123456789");
}

TEST_F(CheckpointStoreTest, KeepsAllOnRequest) {
  CheckpointStore all(store_.folder(), true);
  for (int i = 1; i <= 4; ++i) all.save(small_checkpoint(i), i == 2);
  EXPECT_EQ(names().size(), 6u);
}

TEST_F(CheckpointStoreTest, SameUpdateIsReplaced) {
  store_.save(small_checkpoint(5), true);
  Checkpoint again = small_checkpoint(5);
  again.state.epoch = 1;
  again.weights = again.ema;
  store_.save(again, false);
  EXPECT_THAT(names(), ElementsAre("best", "last", "update-00000005"));
  const Checkpoint read = read_checkpoint(store_.folder() / "last");
  EXPECT_EQ(read.state.epoch, 1);
  EXPECT_TRUE(same(read.weights, again.weights));
}

TEST_F(CheckpointStoreTest, LeftoversOfKilledWritesGoWithTheNextSave) {
  for (const char* name : {".tmp-update-00000007-1", ".old-update-00000003-1", ".tmp-last-1"}) {
    fs::create_directories(store_.folder() / name);
    write_file(store_.folder() / name / "model.safetensors", "half");
  }
  write_file(store_.folder() / "notes.txt", "mine");
  EXPECT_FALSE(store_.newest().has_value());
  store_.save(small_checkpoint(8), true);
  EXPECT_THAT(names(), ElementsAre("best", "last", "notes.txt", "update-00000008"));
}

TEST_F(CheckpointStoreTest, FallsBackToTheNewestThatReads) {
  CheckpointStore all(store_.folder(), true);
  for (const int i : {9, 10, 100, 20}) all.save(small_checkpoint(i), false);
  std::vector<std::string> skipped;
  EXPECT_EQ(store_.newest(&skipped), store_.folder() / "update-00000020");  // `last`, not the highest number
  EXPECT_THAT(skipped, IsEmpty());
  damage("update-00000020");
  damage("update-00000100");
  EXPECT_EQ(store_.newest(&skipped), store_.folder() / "update-00000010");
  EXPECT_THAT(skipped, ElementsAre(HasSubstr("update-00000020/model.safetensors: damaged: CRC-32"),
                                   HasSubstr("update-00000100/model.safetensors: damaged: CRC-32")));
  fs::remove_all(store_.folder() / "update-00000020");
  fs::remove(store_.folder() / "update-00000010" / "optimizer.safetensors");
  skipped.clear();
  EXPECT_EQ(store_.newest(&skipped), store_.folder() / "update-00000009");
  EXPECT_THAT(skipped, ElementsAre(HasSubstr("update-00000020: does not exist"), HasSubstr("00100/model"),
                                   HasSubstr("update-00000010/optimizer.safetensors: missing")));
}

TEST_F(CheckpointStoreTest, FindsTheCopyThatAKilledReplacementMovedAway) {
  store_.save(small_checkpoint(4), true);
  fs::rename(store_.folder() / "update-00000004", store_.folder() / ".old-update-00000004-1");
  const auto newest = store_.newest();
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(read_checkpoint(*newest).state.updates, 4);
  store_.save(small_checkpoint(4), false);
  EXPECT_THAT(names(), ElementsAre("best", "last", "update-00000004"));
}

TEST_F(CheckpointStoreTest, LinksThatACopyMadeDirectoriesStillWork) {
  store_.save(small_checkpoint(4), true);
  fs::remove(store_.folder() / "last");
  fs::rename(store_.folder() / "update-00000004", store_.folder() / "last");
  EXPECT_EQ(store_.newest(), store_.folder() / "last");
  store_.save(small_checkpoint(5), true);
  EXPECT_THAT(names(), ElementsAre("best", "last", "update-00000005"));
  EXPECT_EQ(link("last"), "update-00000005");
}

TEST_F(CheckpointStoreTest, FindsTheCheckpointThatAUserMeans) {
  const fs::path run = folder_.path() / "run";
  store_.save(small_checkpoint(1), false);
  EXPECT_EQ(find_checkpoint(run), store_.folder() / "last");
  store_.save(small_checkpoint(2), true);
  store_.save(small_checkpoint(3), false);
  EXPECT_EQ(find_checkpoint(run), store_.folder() / "best");
  EXPECT_EQ(find_checkpoint(store_.folder()), store_.folder() / "best");
  EXPECT_EQ(find_checkpoint(store_.folder() / "last"), store_.folder() / "last");
  EXPECT_EQ(find_checkpoint(store_.folder() / "update-00000003" / "model.safetensors"),
            store_.folder() / "update-00000003");
  fs::remove(store_.folder() / "best");
  fs::remove(store_.folder() / "last");
  EXPECT_EQ(find_checkpoint(run), store_.folder() / "update-00000003");
  EXPECT_THAT(error_of<FileError>([&] { find_checkpoint(folder_.path()); }),
              testing::AllOf(StartsWith(folder_.path().string() + ": no checkpoint here: looked for "),
                             HasSubstr("trainer.json"), HasSubstr("checkpoints/best"),
                             HasSubstr("checkpoints/last")));
  EXPECT_EQ(error_of<FileError>([&] { find_checkpoint(folder_.path() / "none"); }),
            (folder_.path() / "none").string() + ": does not exist");
}

/// Limits the size of files while alive: writes beyond it fail as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_;
};

TEST_F(CheckpointStoreTest, FailedSaveReportsAndKeepsThePreviousOnes) {
  store_.save(small_checkpoint(1), true);
  const auto bytes = fs::file_size(store_.folder() / "last" / "model.safetensors");
  for (const std::int64_t update : {1, 2}) {  // a replacement and a new one
    const FileSizeLimit limit(bytes / 2);
    EXPECT_THAT(error_of<FileError>([&] { store_.save(small_checkpoint(update), true); }),
                testing::AllOf(StartsWith((store_.folder() / fmt::format("update-{:08}", update) /
                                           "model.safetensors: cannot write: File too large")
                                              .string()),
                               HasSubstr("bytes)")));
  }
  EXPECT_THAT(names(), ElementsAre("best", "last", "update-00000001"));
  EXPECT_EQ(read_checkpoint(store_.folder() / "last").state.updates, 1);
  store_.save(small_checkpoint(2), true);
  EXPECT_EQ(store_.newest(), store_.folder() / "update-00000002");
}

TEST_F(CheckpointStoreTest, FullDiskReportsAndKeepsThePreviousOnes) {
  const fs::path disk = folder_.path() / "disk";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=128k") != 0)
    GTEST_SKIP() << "cannot mount a small file system; FailedSaveReportsAndKeepsThePreviousOnes stands in";
  {
    CheckpointStore store(disk / "checkpoints", true);
    store.save(small_checkpoint(1), true);
    std::string error;
    int saved = 1;
    while (error.empty() && saved < 100) {
      try {
        store.save(small_checkpoint(saved + 1), false);
        ++saved;
      } catch (const FileError& full) {
        error = full.what();
      }
    }
    EXPECT_THAT(error, HasSubstr(fmt::format("update-{:08}/", saved + 1)));
    EXPECT_THAT(error, HasSubstr("No space left on device"));
    EXPECT_EQ(store.newest(), store.folder() / fmt::format("update-{:08}", saved));
    for (const auto& entry : fs::directory_iterator(store.folder()))
      EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << entry.path();
    for (int i = 1; i <= saved; ++i)
      EXPECT_EQ(read_checkpoint(store.folder() / fmt::format("update-{:08}", i)).state.updates, i);
  }
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

/// Saves in child processes that are killed. Memory stands in for the disk where it can: a kill then rarely
/// waits for a sync.
class KillTest : public testing::Test {
 protected:
  KillTest() {
    std::error_code error;
    const fs::path memory = "/dev/shm";
    if (::access(memory.c_str(), W_OK) == 0) folder_ = memory / fmt::format("gyre_kill_{}", ::getpid());
    fs::remove_all(folder_, error);
    for (int i = 0; i <= 4; ++i) made_.push_back(small_checkpoint(i));
    store_.emplace(folder_);
    store_->save(made_[1], true);
  }
  ~KillTest() override { fs::remove_all(folder_); }

  void check_whole() {
    std::vector<std::string> skipped;
    const auto newest = store_->newest(&skipped);
    ASSERT_TRUE(newest.has_value());
    EXPECT_THAT(skipped, IsEmpty());
    EXPECT_TRUE(newest->filename().string().starts_with("update-")) << *newest;
    for (const char* name : {"last", "best"}) {
      const Checkpoint read = read_checkpoint(folder_ / name);
      const Checkpoint& written = made_.at(static_cast<std::size_t>(read.state.updates));
      EXPECT_TRUE(same(read.weights, written.weights) && same(read.optimizer, written.optimizer)) << name;
      seen_.insert(read.state.updates);
    }
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (!entry.path().filename().string().starts_with("update-")) continue;
      EXPECT_NO_THROW(read_checkpoint(entry.path()));
    }
  }

  TempFolder fallback_;
  fs::path folder_ = fallback_.path() / "checkpoints";
  std::vector<Checkpoint> made_;
  std::optional<CheckpointStore> store_;
  std::set<std::int64_t> seen_;
};

TEST_F(KillTest, AKillAtARandomMomentLeavesAReadableCheckpoint) {
  const auto begin = std::chrono::steady_clock::now();
  store_->save(made_[2], false);
  const auto once =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  RandomStream stream(static_cast<std::uint64_t>(::getpid()), Purpose::test);
  for (int round = 0; round < 30; ++round) {
    const ::pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // Each update twice, so that half of the saves are replacements.
      for (std::uint64_t i = 0;; ++i) store_->save(made_[1 + i / 2 % 4], i % 3 == 0);
    }
    ::usleep(static_cast<useconds_t>(stream.below(static_cast<std::uint64_t>(6 * once.count()) + 3000)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);  // not by an error of its own
    check_whole();
  }
  EXPECT_GT(seen_.size(), 1u);  // the children got to work
}

TEST_F(KillTest, AKillAtEachSystemCallLeavesAReadableCheckpoint) {
  for (const std::int64_t update : {1, 2}) {  // a replacement and a new one
    int stops = 0;
    for (bool finished = false; !finished; ++stops) {
      store_->save(made_[1], true);
      const ::pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
        ::raise(SIGSTOP);
        store_->save(made_[static_cast<std::size_t>(update)], true);
        ::_exit(0);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      if (WIFEXITED(status)) GTEST_SKIP() << "no tracing here; AKillAtARandomMoment… stands in";
      // Stops before and after each system call; the kill comes at stop number `stops`.
      for (int i = 0; i <= stops && !finished; ++i) {
        ASSERT_EQ(::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr), 0);
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        finished = WIFEXITED(status);
      }
      if (!finished) {
        ASSERT_EQ(::kill(child, SIGKILL), 0);
        ASSERT_EQ(::waitpid(child, &status, 0), child);
      } else {
        EXPECT_EQ(WEXITSTATUS(status), 0);
      }
      check_whole();
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(stops, 50);
  }
  EXPECT_EQ(seen_, (std::set<std::int64_t>{1, 2}));
}

}  // namespace
}  // namespace gyre
