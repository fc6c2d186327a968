#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/safetensors.h"
#include "data/transform.h"
#include "models/model.h"
#include "train/config.h"

namespace gyre {

/// Where a run stands: everything that the next update depends on besides weights and moments. JSON in
/// trainer.json.
struct TrainingState {
  std::int64_t updates = 0;    ///< optimiser steps done
  std::int64_t epoch = 0;      ///< epoch of the next batch
  std::int64_t step = 0;       ///< its batch within that epoch
  std::int64_t bad_steps = 0;  ///< non-finite losses and gradients in a row
  std::int64_t skipped = 0;    ///< batches without an update in all
  std::int64_t ema_updates = 0;
  double best_top1 = -1;  ///< percent on the hold-out; -1 before the first evaluation
  std::int64_t best_epoch = -1;
  double last_loss =
      std::numeric_limits<double>::quiet_NaN();  ///< mean training loss of the last whole epoch
  double last_top1 = -1;                         ///< of the last evaluation
  double seconds = 0;                            ///< training time so far, over all resumptions
  // Open window of the step log, so that an interrupted line is continued.
  double window_loss = 0;
  std::int64_t window_samples = 0;
  double window_norm = 0;
  std::int64_t window_steps = 0;
  // Sums of the running epoch.
  double epoch_loss = 0;
  std::int64_t epoch_samples = 0;
  // With train.amp fp16 (else 0).
  double loss_scale = 0;
  std::int64_t scale_updates = 0;  ///< since it last changed
};

/// A directory: model.safetensors (raw weights), ema.safetensors (averaged weights, if EMA is on),
/// optimizer.safetensors and trainer.json with the state, the configuration, the preprocessing, the class
/// names, and size and CRC-32 of each file. It exists whole or not at all: written beside, synced, renamed.
struct Checkpoint {
  Config config;  ///< effective
  Preprocessing preprocessing;
  std::vector<std::string> class_names;  ///< empty where they are unknown (imported weights)
  TrainingState state;
  TensorMap weights;
  TensorMap ema;                 ///< empty without EMA
  TensorMap optimizer;           ///< empty if not loaded
  std::filesystem::path path{};  ///< where it was read from, for messages; empty if it was not
};

/// Writes `checkpoint` as the directory `path`. FileError with the reason; nothing is left behind.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

enum class CheckpointParts { all, weights };
/// Reads one checkpoint directory (or the link to it). FileError naming file and tensor for whatever is
/// missing, extra, truncated or damaged (size, CRC-32).
Checkpoint read_checkpoint(const std::filesystem::path& path, CheckpointParts parts = CheckpointParts::all);
/// Checks presence, sizes and CRC-32 of all files against trainer.json, without reading a tensor. FileError
/// as above.
void verify_checkpoint(const std::filesystem::path& path);
/// The checkpoint that a user means by a path: a checkpoint directory, a run directory (its `best`, else
/// `last`), or a model.safetensors inside one. FileError listing what was looked for.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

/// Builds the checkpoint's model on `device` with its raw or averaged weights. `weights`: "ema" (falls back
/// to raw if there is none) or "raw"; throws ValueError for any other text.
std::unique_ptr<Model> load_model(const Checkpoint& checkpoint, const std::string& weights = "ema",
                                  Device device = {});

/// The checkpoints of one run: `<run>/checkpoints/update-00001234`, links `last` and `best`.
class CheckpointStore {
 public:
  explicit CheckpointStore(std::filesystem::path folder, bool keep_all = false);

  /// Writes, repoints `last` (and `best`), then removes whole checkpoints that no link names and leftovers of
  /// killed writes. FileError with the reason; the previous ones stay.
  void save(const Checkpoint& checkpoint, bool best);
  /// The newest complete checkpoint: `last`, else the highest number that reads; each damaged one skipped
  /// goes to `skipped` with its reason. Empty if there is none.
  std::optional<std::filesystem::path> newest(std::vector<std::string>* skipped = nullptr) const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  bool keep_all_;
};

}  // namespace gyre
