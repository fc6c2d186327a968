#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/transform.h"
#include "kernels/eq_linear.h"
#include "models/model.h"

namespace gyre {

/// Sums over samples, so that every sample counts once whatever the batches; accuracies in percent.
struct Accuracy {
  std::int64_t samples = 0;
  double loss = 0;  ///< mean cross entropy without smoothing
  double top1 = 0;
  double top5 = 0;
};

/// All images turned by one angle, counter-clockwise.
struct RotationResult {
  int degrees = 0;
  bool mirrored = false;  ///< left-right, before the turn
  Accuracy accuracy;
  double max_logit_change = 0;  ///< largest |logit - upright logit| / largest |upright logit|
};

struct EvalOptions {
  std::filesystem::path checkpoint;
  std::string data_path;       ///< overrides data.path of the checkpoint; empty: as trained
  std::string split = "test";  ///< test | holdout | train
  std::string weights = "ema";
  std::optional<kernels::EqBackend> backend;  ///< overrides the checkpoint's
  std::int64_t batch_size = 250;
  int workers = 2;
  Device device;
  bool rotations = false;  ///< also at 90°, 180° and 270°
  bool mirrors = false;    ///< with rotations: also of mirrored images
  bool progress = true;    ///< line on the terminal
};

struct EvalResult {
  std::string model;
  std::filesystem::path checkpoint;
  std::string weights;  ///< those used
  std::string backend;
  std::vector<std::string> kernels;  ///< names of the EQ-Linear kernels that ran
  std::string split;
  std::string preprocessing;  ///< in words
  Device device;
  double images_per_s = 0;            ///< loading included; a turned image counts again
  double peak_device_memory_mb = -1;  ///< of tensors on a CUDA device; -1: computed on the CPU
  Accuracy accuracy;
  std::vector<RotationResult> rotations;  ///< 0, 90, 180, 270 if asked for, then mirrored
};

/// Accuracy of a model in evaluation mode on a whole dataset, on the model's device; restores its mode. Where
/// the device has no room for a batch, in smaller ones.
/// `label` names the progress line (empty: none).
Accuracy evaluate(Model& model, std::shared_ptr<const Dataset> dataset, const Preprocessing& preprocessing,
                  std::int64_t batch_size, int workers, const std::string& label = "");

/// `gyre eval`: loads a checkpoint and measures it. Throws Error for bad files or options.
EvalResult evaluate_checkpoint(const EvalOptions& options);

}  // namespace gyre
