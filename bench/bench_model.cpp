#include "bench/bench_train.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "bench/statistics.h"
#include "core/memory.h"
#include "core/random.h"
#include "data/splits.h"
#include "train/step.h"

namespace gyre {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t most_batches = 8;
constexpr std::int64_t most_batch_bytes = 512 << 20;

std::int64_t batches_to_hold(const ModelConfig& model, std::int64_t batch) {
  const std::int64_t bytes = 4 * batch * model.in_channels * model.image_size * model.image_size;
  return std::clamp<std::int64_t>(most_batch_bytes / std::max<std::int64_t>(1, bytes), 1, most_batches);
}

std::vector<Batch> read_batches(const Config& config, const DataSplits& splits, std::int64_t size) {
  const Sampler sampler = training_sampler(config, *splits.train);
  const std::int64_t count = std::min(batches_to_hold(config.model, size), sampler.batches());
  Loader loader(splits.train, Pipeline(splits.preprocessing, config.data.augment), sampler, config.train.seed,
                config.data.workers, config.data.prefetch);
  loader.start_epoch(0);
  std::vector<Batch> batches;
  while (static_cast<std::int64_t>(batches.size()) < count) batches.push_back(*loader.next());
  return batches;
}

std::vector<Batch> random_batches(const Config& config, std::int64_t size) {
  const ModelConfig& model = config.model;
  std::vector<Batch> batches(static_cast<std::size_t>(batches_to_hold(model, size)));
  std::uint64_t index = 0;
  for (Batch& batch : batches) {
    RandomStream stream(config.train.seed, Purpose::test, index++);
    batch.images = random_normal({size, model.in_channels, model.image_size, model.image_size}, 1, stream);
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < size; ++i) {
      labels.push_back(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(model.classes))));
      batch.ids.push_back(i);
    }
    batch.labels = Tensor::from(labels, {size});
  }
  return batches;
}

/// Fits `config.model` to the data and returns batches of `size` and where they come from.
std::pair<std::vector<Batch>, std::string> prepare_batches(Config& config, std::int64_t size) {
  DataSplits splits;
  try {
    splits = open_data(config.data, config.train.seed);
  } catch (const FileError& error) {
    config.model = resolve(std::move(config.model));
    validate(config.model);
    return {random_batches(config, size), fmt::format("random ({})", error.what())};
  }
  config.model = fit_model(std::move(config.model), *splits.train, splits.preprocessing);
  return {read_batches(config, splits, size), splits.train->name()};
}

/// The same sizes as an ordinary model (`impl` standard) or with EQ-Linear computed as `impl` says.
ModelConfig twin_of(ModelConfig model, const std::string& impl) {
  const bool standard = impl == "standard";
  model = standard ? ordinary_twin(std::move(model)) : equivariant_twin(std::move(model));
  model.backend = standard ? "auto" : impl;
  return model;
}

/// One implementation with its measurements.
class Contestant {
 public:
  Contestant(const Config& config, std::string impl, const std::vector<Batch>& batches)
      : batches_(batches), rate_(1e-3 * config.optimizer.learning_rate) {
    row_.impl = std::move(impl);
    const std::size_t before = memory_stats().active;
    reset_peak_memory();
    Config own = config;
    own.model = twin_of(config.model, row_.impl);
    learner_ = std::make_unique<Learner>(own);
    for (int i = 0; i < 2; ++i) step();
    row_.peak_memory_mb = static_cast<double>(memory_stats().peak - before) / 1e6;
    row_.kernels = learner_->model().kernel_names(batches.front().size());
  }

  /// Steps for `seconds`, at least one; returns milliseconds per step.
  double run(double seconds) {
    const Clock::time_point start = Clock::now();
    double elapsed = 0;
    std::int64_t steps = 0;
    do {
      step();
      ++steps;
      elapsed = milliseconds_since(start);
    } while (elapsed < 1e3 * seconds);
    return elapsed / static_cast<double>(steps);
  }
  void measure(double seconds) { rounds_.push_back(run(seconds)); }

  BenchTrainRow row(const Contestant& standard, const Contestant& naive) const {
    BenchTrainRow row = row_;
    row.ms_per_step = median(rounds_);
    const auto [least, most] = std::minmax_element(rounds_.begin(), rounds_.end());
    row.ms_min = *least;
    row.ms_max = *most;
    row.images_per_s = 1e3 * static_cast<double>(batches_.front().size()) / row.ms_per_step;
    row.ratio_to_standard = ratio_to(standard);
    row.ratio_to_naive = ratio_to(naive);
    return row;
  }

 private:
  void step() {
    const StepOutcome outcome = learner_->step(batches_[next_++ % batches_.size()], 0, rate_);
    require(outcome.stepped, "bench train: the loss of the {} model is not finite", row_.impl);
  }
  // Within a round, so that a machine that slows down does so for both.
  double ratio_to(const Contestant& other) const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < rounds_.size(); ++i) ratios.push_back(other.rounds_[i] / rounds_[i]);
    return median(std::move(ratios));
  }

  const std::vector<Batch>& batches_;
  double rate_;  // small, since time does not depend on it but divergence would
  std::unique_ptr<Learner> learner_;
  std::size_t next_ = 0;
  BenchTrainRow row_;
  std::vector<double> rounds_;
};

}  // namespace

BenchTrainResult bench_train(const BenchTrainOptions& options) {
  require<ValueError>(options.rounds >= 1, "bench train: {} rounds, at least 1 is needed", options.rounds);
  require<ValueError>(options.seconds > 0, "bench train: {} seconds per round must be positive",
                      options.seconds);
  Config config = options.config;
  const std::int64_t size = config.train.batch_size;
  const auto [batches, images] = prepare_batches(config, size);

  std::vector<Contestant> contestants;
  contestants.reserve(3);
  for (const char* impl : {"standard", "naive", "flash"}) contestants.emplace_back(config, impl, batches);
  for (Contestant& contestant : contestants) contestant.run(std::min(options.seconds, 0.5));
  for (int round = 0; round < options.rounds; ++round) {
    // Each goes first in turn.
    for (std::size_t i = 0; i < contestants.size(); ++i)
      contestants[(i + static_cast<std::size_t>(round)) % contestants.size()].measure(options.seconds);
  }

  BenchTrainResult result{this_machine(), config.model.name, images, size, {}};
  for (const Contestant& contestant : contestants)
    result.results.push_back(contestant.row(contestants[0], contestants[1]));
  return result;
}

}  // namespace gyre
