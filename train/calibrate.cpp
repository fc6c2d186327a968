#include "train/calibrate.h"

#include <chrono>
#include <cmath>
#include <optional>

#include "autograd/autocast.h"
#include "data/device_loader.h"
#include "train/evaluate.h"
#include "train/step.h"

namespace gyre {
namespace {

constexpr std::int64_t warm_up_updates = 20;
constexpr double measured_seconds = 3;
constexpr std::int64_t eval_samples = 1000;
constexpr double usable = 0.93;  // of the budget; the rest covers checkpoints and a machine that slows down

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Pace measure_pace(const Config& config, const DataSplits& splits, Device device) {
  const double start = now();
  Learner learner(config, device);
  DeviceLoader loader(splits.train, Pipeline(splits.preprocessing, config.data.augment),
                      training_sampler(config, *splits.train), config.train.seed, config.data.workers,
                      config.data.prefetch, device);
  std::int64_t epoch = 0;
  loader.start_epoch(epoch);
  const auto update = [&] {
    std::optional<Batch> batch = loader.next();
    if (!batch) {
      loader.start_epoch(++epoch);
      batch = loader.next();
    }
    learner.step(*batch, epoch, config.optimizer.learning_rate * config.schedule.warmup_start);
  };
  for (std::int64_t i = 0; i < warm_up_updates; ++i) update();
  Pace pace;
  synchronize(device);
  const double measured = now();
  std::int64_t updates = 0;
  while (updates < warm_up_updates || now() - measured < measured_seconds) {
    update();
    ++updates;
  }
  synchronize(device);
  pace.update = (now() - measured) / static_cast<double>(updates);

  const auto sample = take_first(splits.test, eval_samples);
  const AutocastScope products(learner.amp());
  const double evaluated = now();
  evaluate(learner.model(), sample, splits.preprocessing, evaluation_batch, config.data.workers);
  const double per_sample = (now() - evaluated) / static_cast<double>(sample->size());
  const auto& held_out = splits.holdout ? splits.holdout : splits.test;
  pace.evaluation = per_sample * static_cast<double>(held_out->size());
  pace.test = per_sample * static_cast<double>(splits.test->size());
  pace.spent = now() - start;
  return pace;
}

std::int64_t updates_in(double budget, const Pace& pace, std::int64_t steps, std::int64_t eval_every) {
  const double per_update = pace.update + pace.evaluation / static_cast<double>(steps * eval_every);
  const double left = usable * budget - pace.spent - pace.evaluation - pace.test;
  const double updates = std::floor(left / per_update);
  if (!(updates >= 1))
    throw ConfigError(
        fmt::format("train.time_budget: {:.0f} s is too short: measuring and evaluating take {:.1f} s, an "
                    "update {:.0f} ms",
                    budget, pace.spent + pace.evaluation + pace.test, 1e3 * pace.update));
  return static_cast<std::int64_t>(updates);
}

}  // namespace gyre
