#include "train/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "core/file.h"
#include "tests/data/support.h"
#include "tests/train/checkpoint_support.h"
#include "tests/train/decimal_comma.h"
#include "train/append_file.h"
#include "train/metrics_file.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TempFolder;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

class RunDirectoryTest : public testing::Test {
 protected:
  std::unique_ptr<RunDirectory> create(std::size_t bytes = 0) {
    return RunDirectory::create(path_, config_, bytes);
  }
  std::string text(const std::string& name) const { return read_file(path_ / name); }
  std::string refusal(std::size_t bytes = 0) {
    return error_of<FileError>([&] { create(bytes); });
  }
  int event_files() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(path_))
      count += entry.path().filename().string().starts_with("events.out.tfevents.");
    return count;
  }

  TempFolder folder_;
  fs::path path_ = folder_.path() / "runs" / "x";
  Config config_ = test::small_config();
};

TEST_F(RunDirectoryTest, WritesItsRecords) {
  EXPECT_FALSE(RunDirectory::holds_run(path_));
  {
    const DecimalComma locale;
    const auto run = create(100'000);
    run->record("step", 50, {{"loss", 1234.5}, {"lr", 1e-5}, {"norm", std::nan("")}});
    run->record("epoch", 100, {{"top1", 98}, {"a\"b", -std::numeric_limits<double>::infinity()}});
    run->summarise(100, {{"loss", 0.1}, {"top1", 98.25}});
    run->summarise(200, {{"top1", 99}, {"loss", std::nan("")}});
    run->log("hello");
    run->log("two\nlines");
    run->sync();
    EXPECT_EQ(run->path(), path_);
    EXPECT_EQ(run->checkpoints().folder(), path_ / "checkpoints");
  }
  EXPECT_EQ(text("metrics.jsonl"),
            "{\"kind\":\"step\",\"update\":50,\"loss\":1234.5,\"lr\":1e-05,\"norm\":null}\n"
            "{\"kind\":\"epoch\",\"update\":100,\"top1\":98,\"a\\\"b\":null}\n");
  EXPECT_EQ(text("summary.csv"), "update,loss,top1\n100,0.1,98.25\n200,nan,99\n");
  const std::string stamp = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z ";
  EXPECT_THAT(text("log.txt"), MatchesRegex(stamp + "hello\n" + stamp + "two\n" + stamp + "lines\n"));
  EXPECT_EQ(event_files(), 1);
  EXPECT_TRUE(RunDirectory::holds_run(path_));
  EXPECT_EQ(config_to_yaml(RunDirectory::stored_config(path_)), text("config.yaml"));
  EXPECT_EQ(RunDirectory::stored_config(path_).optimizer.learning_rate, 0.1 + 0.2);
}

TEST_F(RunDirectoryTest, StoresANewConfiguration) {
  const auto run = create();
  config_.train.updates = 4321;
  run->store_config(config_);
  EXPECT_EQ(RunDirectory::stored_config(path_).train.updates, 4321);
}

TEST_F(RunDirectoryTest, RefusesFoldersThatAreTaken) {
  create();
  EXPECT_EQ(refusal(),
            path_.string() +
                ": holds a run already; continue it with --resume auto or choose another folder with --out");
  path_ = folder_.path() / "photos";
  folder_.write("photos/cat.png", "x");
  EXPECT_EQ(refusal(),
            path_.string() + ": holds other files, such as cat.png; choose another folder with --out");
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()),
            1);  // not even a lock file
  path_ /= "cat.png";
  EXPECT_THAT(refusal(), StartsWith(path_.string() + ": not a folder"));
  EXPECT_EQ(error_of<FileError>([&] { RunDirectory::reopen(folder_.path() / "photos", 1); }),
            (folder_.path() / "photos").string() + ": holds no run: config.yaml is missing");
  EXPECT_THAT(error_of<FileError>([&] { RunDirectory::stored_config(folder_.path() / "none"); }),
              HasSubstr("none: holds no run"));
}

TEST_F(RunDirectoryTest, StartsInAnEmptyFolderOrAfterAStartThatFailed) {
  fs::create_directories(path_);
  for (const char* name : {".lock", ".room", "config.yaml.tmp-1-0"}) write_file(path_ / name, "");
  create();
  EXPECT_TRUE(RunDirectory::holds_run(path_));
  EXPECT_FALSE(fs::exists(path_ / "config.yaml.tmp-1-0"));
}

TEST_F(RunDirectoryTest, FindsAFolderThatCannotBeWritten) {
  folder_.write("file", "x");
  path_ = folder_.path() / "file" / "run";
  EXPECT_THAT(refusal(), MatchesRegex(".*/file/run: cannot (write|create): Not a directory"));
  path_ = "/proc/self/run";
  EXPECT_THAT(refusal(), StartsWith("/proc/self/run: cannot create: "));
}

TEST_F(RunDirectoryTest, FindsADiskWithoutRoom) {
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const struct rlimit small { 1'000'000, before.rlim_max };
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = refusal(5'000'000);
  const bool fits = RunDirectory::create(folder_.path() / "small", config_, 900'000) != nullptr;
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(error,
            path_.string() + ": no room for the 5.00 MB (5000000 bytes) that a run needs: File too large");
  EXPECT_TRUE(fits);
  EXPECT_FALSE(fs::exists(path_ / ".room"));
  EXPECT_FALSE(RunDirectory::holds_run(path_));
  create(5'000'000);
}

TEST_F(RunDirectoryTest, OneProcessAtATime) {
  auto run = create();
  const std::string taken = fmt::format("{}: in use by another process (pid {})", path_.string(), ::getpid());
  EXPECT_EQ(error_of<FileError>([&] { RunDirectory::reopen(path_, 1); }), taken);
  const ::pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      RunDirectory::reopen(path_, 1);
      ::_exit(1);
    } catch (const FileError& error) {
      ::_exit(error.what() == taken ? 0 : 2);
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  run.reset();
  EXPECT_NO_THROW(RunDirectory::reopen(path_, 1));
}

TEST_F(RunDirectoryTest, ReopenDropsWhatCameAfterTheCheckpoint) {
  {
    const auto run = create();
    for (const std::int64_t update : {50, 100, 150}) {
      run->record("step", update, {{"loss", 1.0 / static_cast<double>(update)}});
      run->summarise(update, {{"top1", static_cast<double>(update)}});
    }
  }
  write_file(path_ / "metrics.jsonl", text("metrics.jsonl") + "{\"kind\":\"step\",\"upd");
  write_file(path_ / "summary.csv", text("summary.csv") + "1");
  write_file(path_ / "summary.csv.tmp-1-0", "half");
  for (const char* again : {"first", "second"}) {
    const auto run = RunDirectory::reopen(path_, 100);
    EXPECT_EQ(text("metrics.jsonl"),
              "{\"kind\":\"step\",\"update\":50,\"loss\":0.02}\n{\"kind\":\"step\",\"update\":100,\"loss\":0."
              "01}\n");
    EXPECT_EQ(text("summary.csv"), "update,top1\n50,50\n100,100\n");
    run->record("step", 150, {{"loss", 7}});
    run->summarise(150, {{"top1", 8}});
    run->log(again);
  }
  EXPECT_THAT(text("metrics.jsonl"), HasSubstr("0.01}\n{\"kind\":\"step\",\"update\":150,\"loss\":7}\n"));
  EXPECT_EQ(text("summary.csv"), "update,top1\n50,50\n100,100\n150,8\n");
  EXPECT_THAT(text("log.txt"), MatchesRegex("[^ ]* first\n[^ ]* second\n"));
  EXPECT_EQ(event_files(), 3);
  EXPECT_FALSE(fs::exists(path_ / "summary.csv.tmp-1-0"));
}

TEST_F(RunDirectoryTest, ReopenWithoutRecordsStartsThem) {
  create();
  for (const char* name : {"metrics.jsonl", "summary.csv", "log.txt"}) fs::remove(path_ / name);
  const auto run = RunDirectory::reopen(path_, 0);
  run->summarise(5, {{"x", 1}});
  EXPECT_EQ(text("summary.csv"), "update,x\n5,1\n");
}

TEST_F(RunDirectoryTest, KeepsCheckpointsAsConfigured) {
  config_.checkpoint.keep_epochs = true;
  create();
  const auto run = RunDirectory::reopen(path_, 0);
  for (int i = 1; i <= 3; ++i) run->checkpoints().save(test::small_checkpoint(i), false);
  EXPECT_TRUE(fs::exists(path_ / "checkpoints" / "update-00000001"));
}

TEST(MetricsFile, CutKeepsWholeLinesUpToTheUpdate) {
  const std::string good = "{\"kind\":\"step\",\"update\":10}\n",
                    late = "{\"kind\":\"step\",\"update\":11}\n";
  EXPECT_EQ(cut_metrics(late + good + "{\"kind\":\"st" + "\n" + "7\n\n{}\n" + good, 10), good + good);
  EXPECT_EQ(cut_metrics(good + good.substr(0, good.size() - 1), 10),
            good + good);  // only the line end is torn
  EXPECT_EQ(cut_metrics("", 10), "");
  EXPECT_EQ(cut_summary("update,a\n10,1.5\n11,2\n9,\n", 10), "update,a\n10,1.5\n9,\n");
  EXPECT_EQ(cut_summary("update,a\n9,1\n10,93.2", 10), "update,a\n9,1\n");  // was 93.25 perhaps
  EXPECT_EQ(cut_summary("update,a\n9\n10,1,2\nx,1\n", 10), "update,a\n");
  EXPECT_EQ(cut_summary("update,a", 10), "");
}

TEST(MetricsFile, SummaryKeepsTheColumnsOfItsHeader) {
  const TempFolder folder;
  const fs::path path = folder.write("s.csv", "update,a,b\n1,2,3\n");
  SummaryFile file(path);
  file.append(2, {{"b", 4}});
  file.append(3, {{"c", 5}, {"a", 6}});
  file.append(4, {{"a", 7}, {"b", 8}, {"c", 9}});
  EXPECT_EQ(read_file(path), "update,a,b,c\n1,2,3,\n2,,4,\n3,6,,5\n4,7,8,9\n");
  EXPECT_EQ(error_of<ValueError>([&] {
              file.append(5, {{"x,y", 1}});
            }),
            "summary column 'x,y' holds a comma, a quote or a line end");
}

TEST(AppendFile, AFailedAppendLeavesTheFileAsItWas) {
  const TempFolder folder;
  AppendFile file(folder.write("f", "before\n"));
  EXPECT_FALSE(file.empty());
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const struct rlimit small { 100, before.rlim_max };
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = error_of<FileError>([&] { file.append(std::string(200, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(error, file.path().string() + ": cannot write: File too large");
  file.append("after\n");
  file.sync();
  EXPECT_EQ(read_file(file.path()), "before\nafter\n");
  EXPECT_THAT(error_of<FileError>([&] { AppendFile(file.path(), true); }), HasSubstr("File exists"));
}

}  // namespace
}  // namespace gyre
