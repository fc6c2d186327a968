#include "bench/bench_model.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/variable.h"
#include "bench/twins.h"
#include "core/deterministic.h"
#include "core/memory.h"
#include "models/registry.h"
#include "train/step.h"

namespace gyre {
namespace {

using Clock = std::chrono::steady_clock;

/// One implementation, ready to step.
class Contestant {
 public:
  Contestant(const BenchModelOptions& options, const Config& config, std::string impl,
             const std::vector<Batch>& batches)
      : device_(options.device), batches_(batches), rate_(1e-3 * config.optimizer.learning_rate) {
    row_.impl = std::move(impl);
    const std::size_t before = memory_stats(device_).active;
    reset_peak_memory(device_);
    Config own = config;
    own.model = twin_of(config.model, row_.impl);
    amp_ = amp_type(config.train, device_);
    if (options.training) {
      learner_ = std::make_unique<Learner>(own, device_);
    } else {
      inference_ = make_model(own.model, own.train.seed);
      inference_->to(device_);
      inference_->eval();
    }
    for (int i = 0; i < 2; ++i) step();
    row_.peak_memory_mb = static_cast<double>(memory_stats(device_).peak - before) / 1e6;
    row_.kernels = model().kernel_names(batches.front().size(), amp_);
  }

  /// Steps for `seconds`, at least one; returns milliseconds per step, each to its end on the device.
  double run(double seconds) {
    synchronize(device_);
    const Clock::time_point start = Clock::now();
    double elapsed = 0;
    std::int64_t steps = 0;
    do {
      step();
      synchronize(device_);
      ++steps;
      elapsed = milliseconds_since(start);
    } while (elapsed < 1e3 * seconds);
    steps_ = steps;
    return elapsed / static_cast<double>(steps);
  }

  void profile(double seconds) {
    const Profile profile(device_);
    run(seconds);
    const double total = profile.seconds();
    row_.profile = profile.entries();
    row_.profiled_steps = steps_;
    row_.profiled_seconds = total;
    double known = 0, linear = 0;
    for (const Profile::Entry& entry : row_.profile) {
      known += entry.seconds;
      if (entry.name.find("linear_") != std::string::npos) linear += entry.seconds;
    }
    row_.profile.push_back({"other", steps_, total - known});
    row_.linear_share = linear / total;
  }

  BenchModelRow row(const Runs& own, const Runs& standard, const Runs* naive) const {
    BenchModelRow row = row_;
    row.ms = summarise(own);
    row.images_per_s = 1e3 * static_cast<double>(batches_.front().size()) / row.ms.median;
    row.to_standard = ratio_of(standard, own);
    if (naive) row.to_naive = ratio_of(*naive, own);
    return row;
  }

 private:
  Model& model() { return learner_ ? learner_->model() : *inference_; }

  void step() {
    const Batch& batch = batches_[next_++ % batches_.size()];
    if (learner_) {
      const StepOutcome outcome = learner_->step(batch, 0, rate_);
      require(outcome.stepped, "bench train: the loss of the {} model is not finite", row_.impl);
    } else {
      const NoGrad no_grad;
      const AutocastScope products(amp_);
      inference_->forward(Variable(batch.images));
    }
  }

  Device device_;
  std::optional<DType> amp_;
  const std::vector<Batch>& batches_;
  double rate_;  // small, since time does not depend on it but divergence would
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<Model> inference_;
  std::size_t next_ = 0;
  std::int64_t steps_ = 0;  // of the last run
  BenchModelRow row_;
};

}  // namespace

BenchModelResult bench_model(const BenchModelOptions& options) {
  require<ValueError>(options.rounds >= 1 && options.runs >= 1,
                      "bench: {} runs of {} rounds, at least 1 of each is needed", options.runs,
                      options.rounds);
  require<ValueError>(options.seconds > 0, "bench: {} seconds per round must be positive", options.seconds);
  Config config = options.config;
  set_deterministic(config.train.deterministic);
  auto [batches, images] = prepare_batches(config, options.random_images);
  for (Batch& batch : batches) {
    batch.images = batch.images.to(options.device);
    batch.labels = batch.labels.to(options.device);
  }

  std::vector<std::unique_ptr<Contestant>> contestants;
  contestants.push_back(std::make_unique<Contestant>(options, config, "standard", batches));
  for (const std::string& impl : options.impls)
    contestants.push_back(std::make_unique<Contestant>(options, config, impl, batches));
  std::vector<std::function<double()>> measure;
  for (const auto& contestant : contestants) {
    contestant->run(std::min(options.seconds, 0.5));
    measure.push_back([&options, one = contestant.get()] { return one->run(options.seconds); });
  }
  std::vector<Runs> runs(contestants.size());
  for (int run = 0; run < options.runs; ++run) run_alternating(options.rounds, measure, runs);

  BenchModelResult result{
      this_machine(), options.device, config.model.name, images, config.train.batch_size, options.runs, {}};
  const auto naive = std::find(options.impls.begin(), options.impls.end(), "naive");
  const Runs* naive_runs = naive == options.impls.end()
                               ? nullptr
                               : &runs[static_cast<std::size_t>(naive - options.impls.begin()) + 1];
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    contestants[i]->profile(options.seconds);
    result.results.push_back(contestants[i]->row(runs[i], runs[0], naive_runs));
  }
  return result;
}

}  // namespace gyre
