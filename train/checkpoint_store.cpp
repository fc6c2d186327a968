#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "train/checkpoint.h"

namespace gyre {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view prefix = "update-";
constexpr std::string_view temporary_prefix = ".tmp-", old_prefix = ".old-";

/// The number of "update-00001234".
std::optional<std::int64_t> number_of(std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (code != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing))
    names.push_back(entry.path().filename().string());
  return names;
}

/// What the link names; the link's own name if a copy turned it into a directory.
std::string target_of(const fs::path& link) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(link, error))) return "";
  const fs::path target = fs::read_symlink(link, error);
  return error ? link.filename().string() : target.string();
}

/// Failures are no errors: what stays is tried again at the next save.
void remove_quietly(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

/// By way of a dot-name, so that a half-removed directory is never taken for a checkpoint.
void discard(const fs::path& folder, const std::string& name) {
  const fs::path doomed = folder / fmt::format("{}{}-{}", old_prefix, name, ::getpid());
  remove_quietly(doomed);
  if (::rename((folder / name).c_str(), doomed.c_str()) == 0) remove_quietly(doomed);
}

void remove_leftovers(const fs::path& folder, std::string_view kind) {
  for (const std::string& name : names_in(folder)) {
    if (name.starts_with(kind)) remove_quietly(folder / name);
  }
}

/// The link names something whole at every instant.
void point(const fs::path& folder, const std::string& link, const std::string& target) {
  const fs::path path = folder / link;
  const fs::path temporary = folder / fmt::format("{}{}-{}", temporary_prefix, link, ::getpid());
  if (fs::is_directory(fs::symlink_status(path))) discard(folder, link);
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_symlink(target, temporary, error);
  if (!error) fs::rename(temporary, path, error);
  if (!error) return;
  const std::string reason = error.message();
  remove_quietly(temporary);
  throw FileError(fmt::format("{}: cannot link to {}: {}", path.string(), target, reason));
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, bool keep_all)
    : folder_(std::move(folder)), keep_all_(keep_all) {}

void CheckpointStore::save(const Checkpoint& checkpoint, bool best) {
  remove_leftovers(folder_, temporary_prefix);  // first: their room may be needed
  const std::string name = fmt::format("{}{:08}", prefix, checkpoint.state.updates);
  write_checkpoint(folder_ / name, checkpoint);
  // `best` first: after a kill in between, training goes on from the old `last` and finds this best again.
  if (best) point(folder_, "best", name);
  point(folder_, "last", name);
  sync_directory(folder_);

  remove_leftovers(folder_, old_prefix);
  if (keep_all_) return;
  const std::string kept_best = target_of(folder_ / "best");
  for (const std::string& other : names_in(folder_)) {
    if (number_of(other) && other != name && other != kept_best) discard(folder_, other);
  }
}

std::optional<fs::path> CheckpointStore::newest(std::vector<std::string>* skipped) const {
  const std::vector<std::string> names = names_in(folder_);
  std::vector<std::pair<std::int64_t, std::string>> numbered;
  for (const std::string& name : names) {
    if (const auto number = number_of(name)) numbered.emplace_back(*number, name);
  }
  std::sort(numbered.begin(), numbered.end(), std::greater<>());
  const std::string last = target_of(folder_ / "last");
  std::vector<std::string> candidates;
  if (!last.empty()) candidates.push_back(last);
  for (const auto& [number, name] : numbered) {
    if (name != last) candidates.push_back(name);
  }
  // A replacement that was killed where names cannot be exchanged leaves the old one here.
  for (const std::string& name : names) {
    if (name.starts_with(old_prefix)) candidates.push_back(name);
  }
  for (const std::string& name : candidates) {
    try {
      verify_checkpoint(folder_ / name);
      return folder_ / name;
    } catch (const Error& error) {
      if (skipped) skipped->push_back(error.what());
    }
  }
  return std::nullopt;
}

}  // namespace gyre
