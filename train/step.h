#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "data/loader.h"
#include "models/model.h"
#include "train/config.h"
#include "train/ema.h"
#include "train/loss_scaler.h"
#include "train/optimizer.h"

namespace gyre {

/// What one batch did.
struct StepOutcome {
  double loss = 0;          ///< mean over the batch, with label smoothing
  double grad_norm = 0;     ///< before clipping
  bool stepped = true;      ///< false: loss or norm was not finite and nothing changed
  bool overflowed = false;  ///< then: the loss scale was too large, and is halved
};

/// Model, optimiser and averages of a run, and the arithmetic of one update.
class Learner {
 public:
  /// `config` is effective: the model section fits the data. The model is initialised on the CPU, where
  /// `prepare` may exchange its weights, then lives on `device` with moments and averages: the same numbers
  /// everywhere. ConfigError where amp_type throws it.
  explicit Learner(const Config& config, Device device = {}, const std::function<void(Model&)>& prepare = {});

  /// Forward and backward over the micro-batches of `batch`, which lies on the learner's device, then one
  /// optimiser and EMA update with `rate`.
  StepOutcome step(const Batch& batch, std::int64_t epoch, double rate);
  /// Loss and gradients alone; the latter times the loss scale.
  double gradients(const Batch& batch, std::int64_t epoch);

  Model& model() { return *model_; }
  Optimizer& optimizer() { return *optimizer_; }
  Ema* ema() { return ema_.get(); }
  /// Type of the products, where train.amp asks for one: for the AutocastScope of forward passes.
  std::optional<DType> amp() const { return amp_; }
  /// Of train.amp fp16; else null.
  LossScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }

 private:
  TrainConfig config_;
  std::optional<DType> amp_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Ema> ema_;
  std::optional<LossScaler> scaler_;
};

/// The type that train.amp names; none for "off". ConfigError for any other device than CUDA.
std::optional<DType> amp_type(const TrainConfig& config, Device device);

/// Samples per forward pass where nothing is learned: fills the cores and stays small.
inline constexpr std::int64_t evaluation_batch = 250;

/// Shuffled whole batches of train.batch_size. Throws ConfigError if the data has not one.
Sampler training_sampler(const Config& config, const Dataset& dataset);

/// The model section with what the data decides: classes, channels and image size. ConfigError where the file
/// says otherwise.
ModelConfig fit_model(ModelConfig model, const Dataset& dataset, const Preprocessing& preprocessing);

}  // namespace gyre
