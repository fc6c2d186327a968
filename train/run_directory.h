#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/checkpoint.h"
#include "train/config.h"

namespace gyre {

/// Key and value of one metric; values are finite doubles or printed as null.
using Metrics = std::vector<std::pair<std::string, double>>;

/// The folder of one run: config.yaml (effective), metrics.jsonl, summary.csv, TensorBoard events, log.txt,
/// checkpoints/. Held by a lock file while open, so that two processes never write the same run.
class RunDirectory {
 public:
  /// Starts a run. FileError if the folder holds a run already (naming `--resume auto` and `--out`), is not
  /// writable, is locked by another process, or its disk has not room for `bytes_needed` (found by writing
  /// and removing a file of that size).
  static std::unique_ptr<RunDirectory> create(const std::filesystem::path& path, const Config& config,
                                              std::size_t bytes_needed);
  /// Reopens a run at the state of a checkpoint: records after `updates` are dropped from metrics.jsonl and
  /// summary.csv, so that nothing is missing or repeated.
  static std::unique_ptr<RunDirectory> reopen(const std::filesystem::path& path, std::int64_t updates);
  /// FileError unless a new run can start in `path`: absent, or an empty folder. For finding out before long
  /// work.
  static void require_free(const std::filesystem::path& path);
  /// FileError if another process holds the run in `path`.
  static void require_idle(const std::filesystem::path& path);
  /// True if `path` holds a run.
  static bool holds_run(const std::filesystem::path& path);
  /// Configuration that the run was started with.
  static Config stored_config(const std::filesystem::path& path);
  ~RunDirectory();

  const std::filesystem::path& path() const { return path_; }
  CheckpointStore& checkpoints() { return checkpoints_; }
  /// Replaces config.yaml (after the time budget became a number of updates).
  void store_config(const Config& config);
  /// One line of metrics.jsonl ({"kind":…, "update":…, …}) and one TensorBoard point per value.
  void record(const std::string& kind, std::int64_t update, const Metrics& metrics);
  /// One row of summary.csv per evaluated epoch.
  void summarise(std::int64_t update, const Metrics& metrics);
  /// To log.txt with a time stamp (UTC). Never throws for a full disk: the log reports errors of others.
  void log(const std::string& line);
  /// Flushes and syncs the record files: before a checkpoint counts on them.
  void sync();

 private:
  RunDirectory(std::filesystem::path path, bool keep_all_checkpoints);
  struct Files;
  std::filesystem::path path_;
  CheckpointStore checkpoints_;
  std::unique_ptr<Files> files_;
};

}  // namespace gyre
