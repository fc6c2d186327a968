#include "core/file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "core/error.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using testing::ThrowsMessage;

class File : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / fmt::format("gyre_file_{}_{}", ::getpid(), test->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

// Files longer than this fail with EFBIG while the object lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit{bytes, previous_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit previous_{};
  void (*handler_)(int);
};

TEST_F(File, RoundTripsBytes) {
  std::string bytes("a\0b\r\n\xff", 6);
  for (int i = 0; i < 15; ++i) bytes += bytes;
  for (const std::string& content : {std::string(), std::string("x"), bytes}) {
    write_file(folder_ / "plain", content);
    EXPECT_EQ(read_file(folder_ / "plain"), content);
    write_file_atomically(folder_ / "atomic", content);
    EXPECT_EQ(read_file(folder_ / "atomic"), content);
  }
  EXPECT_EQ(entries(), 2u);
  sync_file(folder_ / "plain");
  sync_directory(folder_);
}

TEST_F(File, ReadsFilesThatReportNoSize) {
  EXPECT_FALSE(read_file("/proc/self/status").empty());
  EXPECT_EQ(read_file("/dev/null"), "");
}

TEST_F(File, MissingFilesAndFoldersAreNamed) {
  const std::string missing = (folder_ / "no" / "file").string();
  EXPECT_THAT([&] { read_file(missing); },
              ThrowsMessage<FileError>(missing + ": cannot open: No such file or directory"));
  EXPECT_THAT([&] { write_file(missing, "x"); },
              ThrowsMessage<FileError>(missing + ": cannot write: No such file or directory"));
  EXPECT_THAT([&] { write_file_atomically(missing, "x"); },
              ThrowsMessage<FileError>(missing + ": cannot write: No such file or directory"));
  EXPECT_THAT([&] { sync_file(missing); },
              ThrowsMessage<FileError>(missing + ": cannot open: No such file or directory"));
  EXPECT_THAT([&] { sync_directory(missing); },
              ThrowsMessage<FileError>(missing + ": cannot open: No such file or directory"));
  EXPECT_THAT([&] { read_file(folder_); },
              ThrowsMessage<FileError>(folder_.string() + ": cannot read: Is a directory"));
}

TEST_F(File, AFullDiskIsReportedWithTheBytesNeeded) {
  EXPECT_THAT([] { write_file("/dev/full", "12345"); },
              ThrowsMessage<FileError>("/dev/full: cannot write: No space left on device (needed 5 bytes)"));
  EXPECT_TRUE(fs::exists("/dev/full"));  // only regular files are removed
}

TEST_F(File, AFailedWriteLeavesNoPartialFile) {
  const std::string big(10000, 'b');
  const fs::path path = folder_ / "model";
  {
    const FileSizeLimit limit(4000);  // the first 4000 bytes are written: a short write, then an error
    EXPECT_THAT(
        [&] { write_file(path, big); },
        ThrowsMessage<FileError>(path.string() + ": cannot write: File too large (needed 10000 bytes)"));
  }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(File, AFailedAtomicWriteLeavesTheOldFile) {
  const fs::path path = folder_ / "model";
  write_file_atomically(path, "old");
  {
    const FileSizeLimit limit(4000);
    EXPECT_THAT(
        [&] { write_file_atomically(path, std::string(10000, 'b')); },
        ThrowsMessage<FileError>(path.string() + ": cannot write: File too large (needed 10000 bytes)"));
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(), 1u);
  write_file_atomically(path, "new");
  EXPECT_EQ(read_file(path), "new");
}

TEST_F(File, AtomicWriteOntoAFolderFailsCleanly) {
  const fs::path path = folder_ / "taken";
  fs::create_directories(path / "inside");
  EXPECT_THAT([&] { write_file_atomically(path, "x"); },
              ThrowsMessage<FileError>(path.string() + ": cannot replace: Is a directory"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(File, AtomicWriteWorksForABareName) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomically("bare", "x");
  fs::current_path(before);
  EXPECT_EQ(read_file(folder_ / "bare"), "x");
}

TEST_F(File, ReadersSeeAWholeFileWhileItIsReplaced) {
  const fs::path path = folder_ / "state";
  const std::string a(100000, 'a'), b(50000, 'b');
  write_file_atomically(path, a);
  for (int i = 0; i < 10; ++i) {
    const std::string before = read_file(path);
    EXPECT_TRUE(before == a || before == b);
    struct stat old {
    }, fresh{};
    ASSERT_EQ(::stat(path.c_str(), &old), 0);
    write_file_atomically(path, i % 2 == 0 ? b : a);
    ASSERT_EQ(::stat(path.c_str(), &fresh), 0);
    EXPECT_NE(old.st_ino, fresh.st_ino);  // another file took the name: the old one was never written to
  }
}

}  // namespace
}  // namespace gyre
