#include "train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <utility>

#include "autograd/ops/loss.h"
#include "core/group_action.h"
#include "core/memory.h"
#include "data/device_loader.h"
#include "data/splits.h"
#include "train/checkpoint.h"
#include "train/terminal.h"

namespace gyre {
namespace {

/// Sums over samples.
struct Tally {
  std::int64_t samples = 0, right1 = 0, right5 = 0;
  double loss = 0;

  /// logits f32 [B, K], labels i64 [B], both on the CPU
  void add(const Tensor& logits, const Tensor& labels) {
    const std::int64_t rows = logits.size(0), classes = logits.size(1);
    const float* row = logits.data<float>();
    const std::int64_t* label = labels.data<std::int64_t>();
    for (std::int64_t i = 0; i < rows; ++i, row += classes) {
      const float own = row[label[i]];
      std::int64_t above = 0;
      double sum = 0;
      const double largest = *std::max_element(row, row + classes);
      for (std::int64_t k = 0; k < classes; ++k) {
        // A tie counts against the label, and so does a logit that is not a number.
        if (k != label[i] && !(row[k] < own)) ++above;
        sum += std::exp(row[k] - largest);
      }
      right1 += above < 1;
      right5 += above < 5;
      loss += std::log(sum) + largest - own;
    }
    samples += rows;
  }

  Accuracy accuracy() const {
    const double n = static_cast<double>(std::max<std::int64_t>(1, samples));
    return {samples, loss / n, 100 * static_cast<double>(right1) / n, 100 * static_cast<double>(right5) / n};
  }
};

/// Evaluation mode while alive, then the mode before.
class EvaluationScope {
 public:
  explicit EvaluationScope(Model& model) : model_(model), was_training_(model.training()) { model_.eval(); }
  ~EvaluationScope() { model_.train(was_training_); }
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;

 private:
  Model& model_;
  bool was_training_;
};

/// Logits f32 [B, K] of images on the model's device, on the CPU.
Tensor logits_of(Model& model, const Tensor& images) {
  return model.forward(Variable(images)).data().to(Device::cpu()).contiguous();
}

/// Calls f(batch) for every batch of the dataset in order, on the model's device, in evaluation mode and
/// without gradients.
void for_each_batch(Model& model, std::shared_ptr<const Dataset> dataset, const Preprocessing& preprocessing,
                    std::int64_t batch_size, int workers, const std::string& label,
                    const std::function<void(const Batch&)>& f) {
  const Sampler sampler(dataset->size(), std::min(batch_size, dataset->size()), 0, 0, 1, false, false);
  constexpr int prefetch = 4;
  DeviceLoader loader(dataset, Pipeline(preprocessing), sampler, 0, workers, prefetch, model.device());
  loader.start_epoch(0);
  ProgressLine progress(stderr, !label.empty());
  const NoGrad no_grad;
  const EvaluationScope scope(model);
  std::int64_t done = 0;
  while (const std::optional<Batch> batch = loader.next()) {
    f(*batch);
    done += batch->size();
    progress.update(label, static_cast<double>(done) / static_cast<double>(dataset->size()),
                    fmt::format("{} images", with_commas(done)));
  }
}

std::shared_ptr<const Dataset> pick_split(const DataSplits& splits, const std::string& name) {
  if (name == "test") return splits.test;
  if (name == "train") return splits.train;
  require<ValueError>(name == "holdout", "split '{}': expected test, holdout or train", name);
  require<ValueError>(splits.holdout != nullptr,
                      "split 'holdout': the checkpoint was trained with data.holdout 0");
  return splits.holdout;
}

/// Names that the checkpoint does not know (imported weights) may be any.
void require_same_classes(const Dataset& dataset, const std::vector<std::string>& trained,
                          std::int64_t classes) {
  const std::vector<std::string>& names = dataset.class_names();
  require<ValueError>(std::cmp_equal(names.size(), classes),
                      "{}: {} classes, but the checkpoint was trained on {}", dataset.name(), names.size(),
                      classes);
  for (std::size_t i = 0; i < trained.size(); ++i)
    require<ValueError>(names[i] == trained[i], "{}: class {} is {}, but the checkpoint was trained on {}",
                        dataset.name(), i, names[i], trained[i]);
}

std::string in_words(const Preprocessing& p) {
  std::string text = fmt::format("{}, {} px", p.channels == 1 ? "grey" : "RGB", p.native_size);
  if (p.size != p.native_size) text += fmt::format(" padded to {} px", p.size);
  return text + fmt::format(", mean {}, std {}", fmt::join(p.mean, " "), fmt::join(p.std, " "));
}

double largest_magnitude(const Tensor& x) {
  double largest = 0;
  const float* values = x.data<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(values[i])));
  return largest;
}

double largest_change(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a.data<float>()[i]) - b.data<float>()[i]));
  return largest;
}

}  // namespace

Accuracy evaluate(Model& model, std::shared_ptr<const Dataset> dataset, const Preprocessing& preprocessing,
                  std::int64_t batch_size, int workers, const std::string& label) {
  batch_size = std::min(batch_size, dataset->size());
  for (;; batch_size = (batch_size + 1) / 2) {
    try {
      Tally tally;
      for_each_batch(model, dataset, preprocessing, batch_size, workers, label, [&](const Batch& batch) {
        tally.add(logits_of(model, batch.images), batch.labels.to(Device::cpu()));
      });
      return tally.accuracy();
    } catch (const OutOfMemoryError&) {
      if (batch_size <= 1) throw;
    }
  }
}

EvalResult evaluate_checkpoint(const EvalOptions& options) {
  EvalResult result;
  result.checkpoint = find_checkpoint(options.checkpoint);
  const Checkpoint checkpoint = read_checkpoint(result.checkpoint, CheckpointParts::weights);
  if (options.device.is_cuda()) reset_peak_memory(options.device);
  const std::unique_ptr<Model> model = load_model(checkpoint, options.weights, options.device);
  if (options.backend) model->set_backend(*options.backend);

  DataConfig data = checkpoint.config.data;
  if (!options.data_path.empty()) data.path = options.data_path;
  const DataSplits splits = open_data(data, checkpoint.config.train.seed);
  const std::shared_ptr<const Dataset> dataset = pick_split(splits, options.split);
  require_same_classes(*dataset, checkpoint.class_names, model->config().classes);

  result.model = checkpoint.config.model.name;
  result.weights = options.weights == "ema" && checkpoint.ema.empty() ? "raw" : options.weights;
  result.backend = std::string(
      kernels::name_of(options.backend.value_or(kernels::parse_eq_backend(checkpoint.config.model.backend))));
  result.kernels = model->kernel_names(options.batch_size);
  result.split = options.split;
  result.preprocessing = in_words(checkpoint.preprocessing);
  result.device = options.device;

  // Element k + 4f mirrors if f = 1, then turns by k · 90°.
  const Group& turns = Group::get("d4");
  const int views = !options.rotations ? 1 : options.mirrors ? 8 : 4;
  std::vector<Tally> tallies(static_cast<std::size_t>(views));
  std::vector<double> changes(static_cast<std::size_t>(views), 0.0);
  double largest_logit = 0;
  const auto started = std::chrono::steady_clock::now();
  for_each_batch(*model, dataset, checkpoint.preprocessing, options.batch_size, options.workers,
                 options.progress ? "eval" : "", [&](const Batch& batch) {
                   const Tensor labels = batch.labels.to(Device::cpu());
                   Tensor upright;
                   for (int turn = 0; turn < views; ++turn) {
                     const Tensor images = turn == 0 ? batch.images : act_on_image(turns, turn, batch.images);
                     const Tensor logits = logits_of(*model, images);
                     const auto i = static_cast<std::size_t>(turn);
                     tallies[i].add(logits, labels);
                     if (turn == 0) {
                       upright = logits;
                       largest_logit = std::max(largest_logit, largest_magnitude(logits));
                     }
                     changes[i] = std::max(changes[i], largest_change(logits, upright));
                   }
                 });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  result.accuracy = tallies.front().accuracy();
  result.images_per_s = static_cast<double>(views * result.accuracy.samples) / seconds.count();
  if (options.device.is_cuda())
    result.peak_device_memory_mb = 1e-6 * static_cast<double>(memory_stats(options.device).peak);
  for (int turn = 0; options.rotations && turn < views; ++turn) {
    const auto i = static_cast<std::size_t>(turn);
    result.rotations.push_back(
        {90 * (turn % 4), turn >= 4, tallies[i].accuracy(), changes[i] / std::max(largest_logit, 1e-30)});
  }
  return result;
}

}  // namespace gyre
