#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/device.h"
#include "models/transfer.h"
#include "train/config.h"

namespace gyre {

/// What the command line adds to a configuration.
struct TrainOptions {
  std::filesystem::path out;          ///< run directory; empty: runs/<config name>
  std::string config_name = "run";    ///< for the default of `out`
  std::optional<std::string> resume;  ///< "auto", or a checkpoint or run directory
  bool dry_run = false;               ///< banner, one batch forward and backward, nothing written
  std::int64_t max_steps = 0;         ///< stop after this many updates in all, saved; 0: no limit
  Device device;
  bool json = false;     ///< nothing but one JSON object on standard output
  bool verbose = false;  ///< fine-tuning: list every tensor, also those kept
};

/// Accuracies in percent on the hold-out (the test set if there is none).
struct TrainResult {
  std::filesystem::path run;
  std::int64_t updates = 0;
  std::int64_t epochs = 0;
  std::int64_t best_epoch = -1;
  double best_top1 = -1;
  double last_loss = 0;
  double last_top1 = -1;
  double test_top1 = -1;  ///< of the best checkpoint, measured once at the end; -1: not reached
  double images_per_s = 0;
  double peak_memory_mb = 0;
  Device device;
  double peak_device_memory_mb = -1;  ///< of tensors on a CUDA device; -1: computed on the CPU
  std::string tune_table;             ///< id of the table that kernels were taken from; empty: the fixed rule
  bool interrupted = false;           ///< by SIGINT or SIGTERM, after saving
  bool already_complete = false;
  std::filesystem::path parent;  ///< checkpoint that was fine-tuned; empty: trained from scratch
  Transfer transfer;             ///< what was taken over from it; empty for a resumed run
};

/// Trains as configured, from scratch or from finetune.checkpoint: banner, steps, evaluation each epoch,
/// checkpoints, resume. Throws Error (bad input, too many non-finite losses in a row); the last good
/// checkpoint stays.
TrainResult run_training(Config config, const TrainOptions& options);

}  // namespace gyre
