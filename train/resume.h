#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/config.h"

namespace gyre {

/// Where a resumed run lives and what it continues from.
struct ResumePoint {
  std::filesystem::path run;
  std::optional<std::filesystem::path> checkpoint;  ///< none: the run was stopped before its first checkpoint
  std::vector<std::string> skipped;                 ///< damaged checkpoints, with reasons
};

/// `resume` is "auto" (the run in `out`; nothing if there is none), a run directory, or a checkpoint inside
/// one. FileError for a path that is neither, and for a run whose checkpoints are all damaged.
std::optional<ResumePoint> find_resume_point(const std::string& resume, const std::filesystem::path& out);

/// Throws ConfigError naming the first key that would change the result, with both values. `given` must be
/// fitted to the data. Where data lies, loader threads, checkpoint intervals, and what changes digits
/// alone (threads, accumulation, train.deterministic, train.amp, the device) may differ.
void require_same_training(const Config& stored, const Config& given, const std::filesystem::path& run);

}  // namespace gyre
