#include "train/resume.h"

#include <set>
#include <string_view>

#include "train/checkpoint.h"
#include "train/config_schema.h"
#include "train/run_directory.h"

namespace gyre {

namespace fs = std::filesystem;

std::optional<ResumePoint> find_resume_point(const std::string& resume, const fs::path& out) {
  const auto newest_of = [](const fs::path& run) {
    RunDirectory::require_idle(run);  // a running process replaces its checkpoints all the time
    ResumePoint point{run, {}, {}};
    point.checkpoint = CheckpointStore(run / "checkpoints").newest(&point.skipped);
    // Going on without would begin anew and replace them.
    if (!point.checkpoint && !point.skipped.empty())
      throw FileError(fmt::format("{}: every checkpoint is damaged: {}; start another run with --out",
                                  run.string(), fmt::join(point.skipped, "; ")));
    return point;
  };
  if (resume == "auto") {
    if (!RunDirectory::holds_run(out)) return std::nullopt;
    return newest_of(out);
  }
  const fs::path path = fs::path(resume).lexically_normal();
  const auto require_same = [&](const fs::path& run) {
    if (!out.empty() && fs::weakly_canonical(out) != fs::weakly_canonical(run))
      throw ConfigError(fmt::format("--out {} and --resume {} name different runs; leave one of them out",
                                    out.string(), resume));
  };
  if (RunDirectory::holds_run(path)) {
    require_same(path);
    return newest_of(path);
  }
  const fs::path run = fs::weakly_canonical(path).parent_path().parent_path();
  if (fs::exists(path / "trainer.json") && RunDirectory::holds_run(run)) {
    require_same(run);
    RunDirectory::require_idle(run);
    return ResumePoint{run, path, {}};
  }
  throw FileError(fmt::format("{}: neither a run directory nor a checkpoint of one", resume));
}

void require_same_training(const Config& stored, const Config& given, const fs::path& run) {
  static const std::set<std::string_view> free_keys{
      "data.path",           "data.workers",       "data.prefetch", "train.threads",
      "train.deterministic", "train.accumulation", "train.amp"};
  for (const ConfigField& field : config_schema()) {
    const std::string path = field.path();
    if (free_keys.contains(path) || field.section == "checkpoint") continue;
    // The number that a time budget or the epochs became is the run's own.
    if (path == "train.updates" && given.train.updates == 0) continue;
    const std::string before = field.write(stored), now = field.write(given);
    if (before != now)
      throw ConfigError(
          fmt::format("{}: the run was started with {}: {}, now it is {}; start another run with --out",
                      run.string(), path, before, now));
  }
}

}  // namespace gyre
