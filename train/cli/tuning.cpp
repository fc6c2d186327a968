#include "train/cli/tuning.h"

#include <cstdio>
#include <cstdlib>

#include "bench/tune_table.h"
#include "core/error.h"
#include "core/file.h"

namespace gyre::cli {
namespace fs = std::filesystem;
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void use(const fs::path& path) {
  const TuneTable table = decode_tune_table(read_file(path), path.string());
  require_fit(table, this_tune_key(GYRE_VERSION), path.string());
  kernels::use_eq_table(choices_of(table));
}

}  // namespace

fs::path default_tune_table() {
  if (const std::string config = environment("XDG_CONFIG_HOME"); !config.empty())
    return fs::path(config) / "gyre" / "tune.json";
  if (const std::string home = environment("HOME"); !home.empty())
    return fs::path(home) / ".config" / "gyre" / "tune.json";
  return {};
}

void load_tune_table(const std::string& named) {
  const std::string path = named.empty() ? environment("GYRE_TUNE") : named;
  if (path == "none") return;
  if (!path.empty()) return use(path);
  std::error_code unreadable;
  const fs::path usual = default_tune_table();
  if (usual.empty() || !fs::is_regular_file(usual, unreadable)) return;
  try {
    use(usual);
  } catch (const FileError& error) {
    fmt::print(stderr, "gyre: warning: kernels follow the fixed rule: {}\n", error.what());
  }
}

}  // namespace gyre::cli
