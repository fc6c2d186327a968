#include "train/step.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/loss.h"
#include "layers/stochastic.h"
#include "models/registry.h"
#include "train/finetune.h"

namespace gyre {

Learner::Learner(const Config& config, Device device, const std::function<void(Model&)>& prepare)
    : config_(config.train),
      amp_(amp_type(config.train, device)),
      model_(make_model(config.model, config.train.seed)) {
  if (prepare) prepare(*model_);
  model_->to(device);
  freeze_parameters(*model_, config.finetune.freeze);
  scale_rates(*model_, config.finetune.layer_decay);
  if (amp_ == DType::f16) scaler_.emplace();
  optimizer_ = make_optimizer(*model_, config.optimizer, config.train.clip_norm);
  if (config.train.ema_decay > 0) ema_ = std::make_unique<Ema>(*model_, config.train.ema_decay);
}

double Learner::gradients(const Batch& batch, std::int64_t epoch) {
  const std::int64_t size = batch.size(), parts = std::min(config_.accumulation, size);
  std::vector<std::pair<double, Tensor>> losses;
  model_->train();
  optimizer_->zero_grad();
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = size * part / parts, last = size * (part + 1) / parts;
    const auto ids =
        std::span(batch.ids).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
    const StochasticScope scope(config_.seed, static_cast<std::uint64_t>(epoch), ids);
    const AutocastScope products(amp_);
    const Variable logits = model_->forward(Variable(batch.images.slice(0, first, last)));
    const Variable mean = cross_entropy(logits, batch.labels.slice(0, first, last), config_.label_smoothing);
    // Weighted by samples, so that micro-batches of unequal size add up to the mean over the batch.
    const double share = static_cast<double>(last - first) / static_cast<double>(size);
    losses.emplace_back(share, mean.data());
    const double factor = share * (scaler_ ? scaler_->scale() : 1);
    (factor == 1 ? mean : affine(mean, factor, 0)).backward();
  }
  // Read back when all work is on its way.
  double loss = 0;
  for (const auto& [share, mean] : losses) loss += share * mean.item();
  return loss;
}

StepOutcome Learner::step(const Batch& batch, std::int64_t epoch, double rate) {
  StepOutcome outcome;
  outcome.loss = gradients(batch, epoch);
  if (!std::isfinite(outcome.loss)) {
    outcome.grad_norm = outcome.loss;
    outcome.stepped = false;
    return outcome;
  }
  const StepResult result = optimizer_->step(rate, scaler_ ? 1 / scaler_->scale() : 1);
  outcome.grad_norm = result.grad_norm;
  outcome.stepped = result.stepped;
  if (!outcome.stepped) {
    outcome.overflowed = scaler_ && scaler_->overflowed();
    return outcome;
  }
  if (scaler_) scaler_->update_done();
  if (ema_) ema_->update();
  return outcome;
}

std::optional<DType> amp_type(const TrainConfig& config, Device device) {
  if (config.amp == "off") return std::nullopt;
  require<ConfigError>(device.is_cuda(),
                       "train.amp: {} computes on CUDA devices only, not on {}; choose one with --device "
                       "cuda, or set train.amp: off",
                       config.amp, device.str());
  return config.amp == "fp16" ? DType::f16 : DType::bf16;
}

Sampler training_sampler(const Config& config, const Dataset& dataset) {
  try {
    return Sampler(dataset.size(), config.train.batch_size, config.train.seed, 0, 1, true, true);
  } catch (const ValueError& error) {
    throw ConfigError(fmt::format("train.batch_size: {}", error.what()));
  }
}

ModelConfig fit_model(ModelConfig model, const Dataset& dataset, const Preprocessing& preprocessing) {
  const auto fit = [&](std::int64_t ModelConfig::*field, const char* name, std::int64_t needed,
                       const char* what) {
    if (model.given.contains(name) && model.*field != needed)
      throw ConfigError(
          fmt::format("model.{}: {}, but {} {} {}", name, model.*field, dataset.name(), what, needed));
    model.*field = needed;
    model.given.insert(name);
  };
  fit(&ModelConfig::classes, "classes", dataset.classes(), "has classes:");
  fit(&ModelConfig::in_channels, "in_channels", preprocessing.channels, "has channels:");
  fit(&ModelConfig::image_size, "image_size", preprocessing.size, "gives images of a side of");
  model = resolve(std::move(model));
  validate(model);
  return model;
}

}  // namespace gyre
