#include "train/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <optional>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "train/append_file.h"
#include "train/metrics_file.h"
#include "train/tensorboard.h"
#include "train/terminal.h"

namespace gyre {
namespace fs = std::filesystem;
namespace {

constexpr const char* config_name = "config.yaml";
constexpr const char* metrics_name = "metrics.jsonl";
constexpr const char* summary_name = "summary.csv";
constexpr const char* log_name = "log.txt";
constexpr const char* lock_name = ".lock";
constexpr const char* room_name = ".room";

[[noreturn]] void fail(const fs::path& path, std::string_view what, int error) {
  throw FileError(fmt::format("{}: {}: {}", path.string(), what, std::generic_category().message(error)));
}

/// Keeps other processes out while alive; the system frees it when the process ends, however that happens.
class RunLock {
 public:
  explicit RunLock(const fs::path& run) {
    const fs::path path = run / lock_name;
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) fail(run, "cannot write", errno);
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      std::array<char, 32> owner{};
      const ssize_t got = ::pread(fd_, owner.data(), owner.size(), 0);
      ::close(fd_);
      if (error == EWOULDBLOCK) {
        throw FileError(
            fmt::format("{}: in use by another process (pid {})", run.string(),
                        std::string_view(owner.data(), got > 0 ? static_cast<std::size_t>(got) : 0)));
      }
      fail(run, "cannot lock", error);
    }
    const std::string pid = fmt::format("{}", ::getpid());
    // The number is for the message only.
    if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, pid.data(), pid.size(), 0) < 0) return;
  }
  ~RunLock() { ::close(fd_); }
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_ = -1;
};

void require_room(const fs::path& run, std::size_t bytes) {
  if (bytes == 0) return;
  const fs::path path = run / room_name;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) fail(run, "cannot write", errno);
  int error = 0;
  do error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  while (error == EINTR);
  ::close(fd);
  ::unlink(path.c_str());
  if (error == 0) return;
  throw FileError(fmt::format("{}: no room for the {} ({} bytes) that a run needs: {}", run.string(),
                              format_bytes(static_cast<double>(bytes)), bytes,
                              std::generic_category().message(error)));
}

void rewrite(const fs::path& path, std::string (*cut)(std::string_view, std::int64_t), std::int64_t updates) {
  std::error_code missing;
  if (!fs::exists(path, missing)) return;
  const std::string before = read_file(path), after = cut(before, updates);
  if (after != before) write_file_atomically(path, after);
}

/// Temporary files of a replacement that was killed.
void remove_leftovers(const fs::path& run) {
  std::error_code error;
  std::vector<fs::path> doomed;
  for (const auto& entry : fs::directory_iterator(run, error)) {
    const std::string name = entry.path().filename().string();
    for (const char* owner : {config_name, metrics_name, summary_name}) {
      if (name.starts_with(fmt::format("{}.tmp-", owner))) doomed.push_back(entry.path());
    }
  }
  for (const fs::path& path : doomed) fs::remove(path, error);
}

/// "2026-01-31T12:00:00Z".
std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace

struct RunDirectory::Files {
  explicit Files(const fs::path& run) : lock(run) {}

  void open(const fs::path& run, std::int64_t next_update) {
    metrics.emplace(run / metrics_name);
    summary.emplace(run / summary_name);
    log.emplace(run / log_name);
    tensorboard.emplace(run, next_update);
    sync_directory(run);
  }

  RunLock lock;
  std::optional<AppendFile> metrics, log;
  std::optional<SummaryFile> summary;
  std::optional<TensorBoardWriter> tensorboard;
};

RunDirectory::RunDirectory(fs::path path, bool keep_all_checkpoints)
    : path_(std::move(path)), checkpoints_(path_ / "checkpoints", keep_all_checkpoints) {}

RunDirectory::~RunDirectory() = default;

std::unique_ptr<RunDirectory> RunDirectory::create(const fs::path& path, const Config& config,
                                                   std::size_t bytes_needed) {
  require_free(path);
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(path, "cannot create", error.value());
  std::unique_ptr<RunDirectory> run(new RunDirectory(path, config.checkpoint.keep_epochs));
  run->files_ = std::make_unique<Files>(path);
  require_free(path);  // another process may have been faster
  require_room(path, bytes_needed);
  remove_leftovers(path);
  run->store_config(config);
  run->files_->open(path, 0);
  return run;
}

std::unique_ptr<RunDirectory> RunDirectory::reopen(const fs::path& path, std::int64_t updates) {
  require<FileError>(holds_run(path), "{}: holds no run: {} is missing", path.string(), config_name);
  auto files = std::make_unique<Files>(path);
  std::unique_ptr<RunDirectory> run(new RunDirectory(path, stored_config(path).checkpoint.keep_epochs));
  run->files_ = std::move(files);
  remove_leftovers(path);
  rewrite(path / metrics_name, cut_metrics, updates);
  rewrite(path / summary_name, cut_summary, updates);
  run->files_->open(path, updates + 1);
  return run;
}

void RunDirectory::require_free(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    if (status.type() == fs::file_type::none) fail(path, "cannot write", error.value());
    return;
  }
  require<FileError>(fs::is_directory(status), "{}: not a folder; choose another one with --out",
                     path.string());
  require<FileError>(
      !holds_run(path),
      "{}: holds a run already; continue it with --resume auto or choose another folder with --out",
      path.string());
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    // What a start that failed left there.
    const bool ours = name == lock_name || name == room_name || name.starts_with("config.yaml.tmp-");
    require<FileError>(ours, "{}: holds other files, such as {}; choose another folder with --out",
                       path.string(), name);
  }
  if (error) fail(path, "cannot read", error.value());
}

void RunDirectory::require_idle(const fs::path& path) { const RunLock lock(path); }

bool RunDirectory::holds_run(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_regular_file(path / config_name, unreadable);
}

Config RunDirectory::stored_config(const fs::path& path) {
  require<FileError>(holds_run(path), "{}: holds no run: {} is missing", path.string(), config_name);
  return load_config(path / config_name);
}

void RunDirectory::store_config(const Config& config) {
  write_file_atomically(path_ / config_name, config_to_yaml(config));
}

void RunDirectory::record(const std::string& kind, std::int64_t update, const Metrics& metrics) {
  files_->metrics->append(metrics_line(kind, update, metrics));
  Metrics tagged;
  for (const auto& [key, value] : metrics) tagged.emplace_back(kind + "/" + key, value);
  files_->tensorboard->scalars(update, tagged);
}

void RunDirectory::summarise(std::int64_t update, const Metrics& metrics) {
  files_->summary->append(update, metrics);
}

void RunDirectory::log(const std::string& line) {
  const std::string stamp = time_stamp();
  std::string text;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find('\n', begin), line.size());
    text += fmt::format("{} {}\n", stamp, std::string_view(line).substr(begin, end - begin));
    begin = end + 1;
  }
  try {
    files_->log->append(text);
  } catch (const FileError&) {
    // The log tells of errors: one of its own must not hide them.
  }
}

void RunDirectory::sync() {
  files_->metrics->sync();
  files_->summary->sync();
  files_->tensorboard->sync();
  files_->log->sync();
}

}  // namespace gyre
