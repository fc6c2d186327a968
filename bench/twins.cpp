#include "bench/twins.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/random.h"
#include "data/splits.h"
#include "train/step.h"

namespace gyre {
namespace {

constexpr std::int64_t most_batches = 8;
constexpr std::int64_t most_batch_bytes = 512 << 20;

std::int64_t batches_to_hold(const ModelConfig& model, std::int64_t batch) {
  const std::int64_t bytes = 4 * batch * model.in_channels * model.image_size * model.image_size;
  return std::clamp<std::int64_t>(most_batch_bytes / std::max<std::int64_t>(1, bytes), 1, most_batches);
}

std::vector<Batch> read_batches(const Config& config, const DataSplits& splits) {
  const Sampler sampler = training_sampler(config, *splits.train);
  const std::int64_t count =
      std::min(batches_to_hold(config.model, config.train.batch_size), sampler.batches());
  Loader loader(splits.train, Pipeline(splits.preprocessing, config.data.augment), sampler, config.train.seed,
                config.data.workers, config.data.prefetch);
  loader.start_epoch(0);
  std::vector<Batch> batches;
  while (static_cast<std::int64_t>(batches.size()) < count) batches.push_back(*loader.next());
  return batches;
}

std::vector<Batch> random_batches(Config& config) {
  config.model = resolve(std::move(config.model));
  validate(config.model);
  const ModelConfig& model = config.model;
  const std::int64_t size = config.train.batch_size;
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

}  // namespace

ModelConfig twin_of(ModelConfig model, const std::string& impl) {
  const bool standard = impl == "standard";
  model = standard ? ordinary_twin(std::move(model)) : equivariant_twin(std::move(model));
  model.backend = standard ? "auto" : impl;
  return model;
}

BenchBatches prepare_batches(Config& config, bool random) {
  if (random) return {random_batches(config), "random"};
  DataSplits splits;
  try {
    splits = open_data(config.data, config.train.seed);
  } catch (const FileError& error) {
    return {random_batches(config), fmt::format("random ({})", error.what())};
  }
  config.model = fit_model(std::move(config.model), *splits.train, splits.preprocessing);
  return {read_batches(config, splits), splits.train->name()};
}

}  // namespace gyre
