#include "train/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "models/registry.h"
#include "train/trainer_state.h"

namespace gyre {
namespace fs = std::filesystem;
namespace {

constexpr const char* manifest_name = "trainer.json";
constexpr const char* model_name = "model.safetensors";
constexpr const char* ema_name = "ema.safetensors";
constexpr const char* optimizer_name = "optimizer.safetensors";

[[noreturn]] void fail(const fs::path& path, std::string_view what, const std::error_code& reason) {
  throw FileError(fmt::format("{}: {}: {}", path.string(), what, reason.message()));
}

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

std::error_code last_error() { return {errno, std::generic_category()}; }

void write_tensors(const fs::path& folder, const std::string& name, const TensorMap& tensors,
                   const Metadata& metadata, FileRecords& files) {
  const std::string bytes = encode_safetensors(tensors, metadata);
  write_file(folder / name, bytes);
  files[name] = {bytes.size(), crc32_of(bytes)};
}

void write_files(const fs::path& folder, const Checkpoint& checkpoint) {
  FileRecords files;
  write_tensors(folder, model_name, checkpoint.weights, weights_metadata(checkpoint, "raw"), files);
  if (!checkpoint.ema.empty())
    write_tensors(folder, ema_name, checkpoint.ema, weights_metadata(checkpoint, "ema"), files);
  if (!checkpoint.optimizer.empty()) write_tensors(folder, optimizer_name, checkpoint.optimizer, {}, files);
  write_file(folder / manifest_name, encode_trainer_json(checkpoint, files));
  sync_directory(folder);
}

/// Moves the directory `from` to `to`; what stood there ends at a dot-name. Where the file system cannot
/// exchange names, a kill in between leaves the old one at `old`, where CheckpointStore::newest finds it.
void put_in_place(const fs::path& from, const fs::path& to, const fs::path& old) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(to, ignored))) {
    if (::rename(from.c_str(), to.c_str()) != 0) fail(to, "cannot create", last_error());
    return;
  }
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
  fs::remove_all(old, ignored);
  if (::rename(to.c_str(), old.c_str()) != 0) fail(to, "cannot replace", last_error());
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const std::error_code reason = last_error();
    ::rename(old.c_str(), to.c_str());
    fail(to, "cannot replace", reason);
  }
}

FileRecords read_manifest(const fs::path& path, Checkpoint& checkpoint) {
  std::error_code error;
  require<FileError>(fs::is_directory(path, error), "{}: {}", path.string(),
                     is_there(path) ? "not a checkpoint directory" : "does not exist");
  const fs::path manifest = path / manifest_name;
  require<FileError>(is_there(manifest), "{}: missing", manifest.string());
  FileRecords files = decode_trainer_json(read_file(manifest), manifest.string(), checkpoint);

  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    require<FileError>(entry.path().extension() != ".safetensors" || files.contains(name),
                       "{}: not listed in {}", entry.path().string(), manifest_name);
  }
  if (error) fail(path, "cannot read", error);
  return files;
}

void verify_file(const fs::path& path, const FileRecord& expected) {
  require<FileError>(is_there(path), "{}: missing, expected {} bytes", path.string(), expected.bytes);
  const std::string bytes = read_file(path);
  require<FileError>(bytes.size() >= expected.bytes, "{}: truncated: {} bytes, expected {}", path.string(),
                     bytes.size(), expected.bytes);
  require<FileError>(bytes.size() == expected.bytes, "{}: damaged: {} bytes, expected {}", path.string(),
                     bytes.size(), expected.bytes);
  const std::uint32_t crc = crc32_of(bytes);
  require<FileError>(crc == expected.crc32, "{}: damaged: CRC-32 {:08x}, expected {:08x}", path.string(), crc,
                     expected.crc32);
}

Checkpoint read_once(const fs::path& path, CheckpointParts parts) {
  Checkpoint checkpoint;
  checkpoint.path = path;
  const FileRecords files = read_manifest(path, checkpoint);
  const auto read = [&](const char* name, TensorMap& tensors) {
    const auto record = files.find(name);
    if (record == files.end()) return;
    verify_file(path / name, record->second);
    tensors = read_safetensors(path / name).tensors;
  };
  read(model_name, checkpoint.weights);
  read(ema_name, checkpoint.ema);
  if (parts == CheckpointParts::all) read(optimizer_name, checkpoint.optimizer);
  return checkpoint;
}

}  // namespace

void write_checkpoint(const fs::path& path, const Checkpoint& checkpoint) {
  const fs::path target = path.has_filename() ? path : path.parent_path();
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const auto beside = [&](const char* prefix) {
    return parent / fmt::format(".{}-{}-{}", prefix, target.filename().string(), ::getpid());
  };
  const fs::path temporary = beside("tmp"), old = beside("old");
  const auto discard = [&] {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
  };
  try {
    discard();
    std::error_code error;
    fs::create_directories(parent, error);
    if (error) fail(parent, "cannot create", error);
    if (!fs::create_directory(temporary, error) || error) fail(temporary, "cannot create", error);
    write_files(temporary, checkpoint);
    put_in_place(temporary, target, old);
    sync_directory(parent);
  } catch (const FileError& error) {
    discard();
    std::string text = error.what();
    if (text.starts_with(temporary.string())) text.replace(0, temporary.string().size(), target.string());
    throw FileError(text);
  } catch (...) {
    discard();
    throw;
  }
  discard();  // what an exchange left there
  std::error_code ignored;
  fs::remove_all(old, ignored);
}

Checkpoint read_checkpoint(const fs::path& path, CheckpointParts parts) {
  const auto target = [&] {
    std::error_code unreadable;
    return fs::canonical(path, unreadable);
  };
  // A link that a running training repoints meanwhile mixes two checkpoints: read the new one.
  for (int attempt = 0;; ++attempt) {
    const fs::path before = target();
    try {
      return read_once(path, parts);
    } catch (const FileError&) {
      if (attempt == 3 || target() == before) throw;
    }
  }
}

void verify_checkpoint(const fs::path& path) {
  Checkpoint checkpoint;
  for (const auto& [name, record] : read_manifest(path, checkpoint)) verify_file(path / name, record);
}

fs::path find_checkpoint(const fs::path& path) {
  require<FileError>(is_there(path), "{}: does not exist", path.string());
  const fs::path start = path.extension() == ".safetensors" && !fs::is_directory(path)
                             ? (path.has_parent_path() ? path.parent_path() : fs::path("."))
                             : path;
  const std::array<fs::path, 5> places = {start, start / "checkpoints" / "best",
                                          start / "checkpoints" / "last", start / "best", start / "last"};
  for (const fs::path& place : places) {
    if (is_there(place / manifest_name)) return place;
  }
  if (const auto newest = CheckpointStore(start / "checkpoints").newest()) return *newest;
  // A checkpoint that lost its manifest, or a link to one that is gone.
  std::error_code unreadable;
  for (const fs::path& place : places) {
    const bool damaged =
        place == start ? is_there(start / model_name) : fs::exists(fs::symlink_status(place, unreadable));
    require<FileError>(!damaged, "{}: missing", (place / manifest_name).string());
  }
  throw FileError(fmt::format("{}: no checkpoint here: looked for {}, {} and {}", path.string(),
                              (places[0] / manifest_name).string(), places[1].string(), places[2].string()));
}

std::unique_ptr<Model> load_model(const Checkpoint& checkpoint, const std::string& weights, Device device) {
  require<ValueError>(weights == "ema" || weights == "raw", "weights '{}': expected ema or raw", weights);
  const bool averaged = weights == "ema" && !checkpoint.ema.empty();
  auto model = make_model(checkpoint.config.model, checkpoint.config.train.seed);
  try {
    model->load_state(averaged ? checkpoint.ema : checkpoint.weights);
  } catch (const Error& error) {
    if (checkpoint.path.empty()) throw;
    throw FileError(
        fmt::format("{}: {}", (checkpoint.path / (averaged ? ema_name : model_name)).string(), error.what()));
  }
  model->to(device);
  return model;
}

}  // namespace gyre
