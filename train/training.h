#pragma once

#include <chrono>
#include <string>

#include "core/error.h"
#include "data/device_loader.h"
#include "data/splits.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/interrupt.h"
#include "train/run_directory.h"
#include "train/step.h"
#include "train/terminal.h"
#include "train/trainer.h"

namespace gyre {

/// What to change where a device is too small.
std::string memory_advice(const TrainConfig& train);

/// One run from its first batch, or from a checkpoint, to its end.
class Training {
 public:
  /// `config` is effective: fitted to the data, train.updates known. `prepare` as for Learner.
  Training(const Config& config, const DataSplits& splits, const TrainOptions& options,
           const std::function<void(Model&)>& prepare = {});

  Learner& learner() { return learner_; }
  std::int64_t steps_per_epoch() const { return loader_.sampler().batches(); }
  const TrainingState& state() const { return state_; }
  /// Continues from a checkpoint.
  void load(const Checkpoint& checkpoint);
  /// One batch forward and backward, nothing kept: for --dry-run.
  double try_batch();
  /// Trains into `run` until the last update, --max-steps or a signal.
  TrainResult run(RunDirectory& run);
  /// Measures the best checkpoint on the test set and writes result.json.
  void finish(RunDirectory& run, TrainResult& result);

 private:
  void train_batch(RunDirectory& run, const Batch& batch);
  void end_epoch(RunDirectory& run);
  void save(RunDirectory& run, bool best);
  void say(RunDirectory& run, const std::string& line);
  /// "  skipped 3", or nothing.
  std::string skipped_in_words() const;
  void show_step(RunDirectory& run, double loss, double rate, double norm);
  double images_per_second() const;
  double peak_device_mb() const;
  [[noreturn]] void give_up(RunDirectory& run, const OutOfMemoryError& error);
  Accuracy evaluate_epoch(RunDirectory& run, bool last);
  void close_epoch();
  std::int64_t epochs_in_all() const;

  Config config_;
  DataSplits splits_;
  TrainOptions options_;
  Learner learner_;
  DeviceLoader loader_;
  TrainingState state_;
  ProgressLine progress_;

  using Clock = std::chrono::steady_clock;
  Clock::time_point started_ = Clock::now(), last_save_ = started_, window_start_ = started_;
  double seconds_before_ = 0;        // of earlier processes
  double evaluation_seconds_ = 0;    // in this process
  std::int64_t window_images_ = 0;   // since window_start_
  std::int64_t images_ = 0;          // in this process
  std::int64_t saved_updates_ = -1;  // of the newest checkpoint written here
  std::int64_t saved_epoch_ = -1;
  std::int64_t saved_step_ = -1;
};

}  // namespace gyre
