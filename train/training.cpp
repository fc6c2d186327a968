#include "train/training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "autograd/autocast.h"
#include "core/file.h"
#include "core/memory.h"
#include "train/schedule.h"

namespace gyre {

namespace fs = std::filesystem;

namespace {

double seconds_between(std::chrono::steady_clock::time_point a, std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

}  // namespace

std::string memory_advice(const TrainConfig& train) {
  return fmt::format(
      "a larger train.accumulation (now {}) needs less, and so does a new run of smaller "
      "train.batch_size (now {})",
      train.accumulation, train.batch_size);
}

Training::Training(const Config& config, const DataSplits& splits, const TrainOptions& options,
                   const std::function<void(Model&)>& prepare)
    : config_(config),
      splits_(splits),
      options_(options),
      learner_(config, options.device, prepare),
      loader_(splits.train, Pipeline(splits.preprocessing, config.data.augment),
              training_sampler(config, *splits.train), config.train.seed, config.data.workers,
              config.data.prefetch, options.device),
      progress_(stderr, !options.json) {}

void Training::load(const Checkpoint& checkpoint) {
  const std::string where = checkpoint.path.string();
  require<ConfigError>(checkpoint.class_names == splits_.train->class_names() &&
                           checkpoint.preprocessing == splits_.preprocessing,
                       "{}: {} has other classes or another image form than the run was started with", where,
                       splits_.train->name());
  require<ConfigError>(checkpoint.state.step < steps_per_epoch(),
                       "{}: stands at batch {} of an epoch, but {} gives {} batches", where,
                       checkpoint.state.step, splits_.train->name(), steps_per_epoch());
  learner_.model().load_state(checkpoint.weights);
  learner_.optimizer().load_state(checkpoint.optimizer);
  if (Ema* ema = learner_.ema()) ema->load_state(checkpoint.ema, checkpoint.state.ema_updates);
  state_ = checkpoint.state;
  if (LossScaler* scaler = learner_.scaler(); scaler && state_.loss_scale != 0)
    scaler->load_state({state_.loss_scale, state_.scale_updates});
  seconds_before_ = state_.seconds;
}

double Training::try_batch() {
  loader_.start_epoch(0);
  try {
    return learner_.gradients(*loader_.next(), 0);
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(fmt::format("{}; {}", error.what(), memory_advice(config_.train)));
  }
}

void Training::say(RunDirectory& run, const std::string& line) {
  progress_.clear();
  if (!options_.json) {
    // A full or closed standard output does not stop a run, whose records are in its folder.
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
  }
  run.log(line);
}

double Training::images_per_second() const {
  const double training = seconds_between(started_, Clock::now()) - evaluation_seconds_;
  return static_cast<double>(images_) / std::max(training, 1e-9);
}

double Training::peak_device_mb() const {
  return options_.device.is_cuda() ? 1e-6 * static_cast<double>(memory_stats(options_.device).peak) : -1;
}

std::int64_t Training::epochs_in_all() const {
  // A batch without an update takes its place in the epoch.
  return (config_.train.updates + state_.skipped + steps_per_epoch() - 1) / steps_per_epoch();
}

TrainResult Training::run(RunDirectory& run) {
  const InterruptScope interrupt;
  TrainResult result;
  result.run = run.path();
  const auto saved = [&] {
    return saved_updates_ == state_.updates && saved_epoch_ == state_.epoch && saved_step_ == state_.step;
  };
  started_ = last_save_ = window_start_ = Clock::now();

  const auto finished = [&] { return state_.updates >= config_.train.updates; };
  const auto stopped = [&] { return options_.max_steps > 0 && state_.updates >= options_.max_steps; };
  bool open = false;
  while (!finished() && !stopped() && !interrupt.requested()) {
    if (!open) loader_.start_epoch(state_.epoch, state_.step);
    open = true;
    try {
      train_batch(run, *loader_.next());
    } catch (const OutOfMemoryError& error) {
      give_up(run, error);
    }
    if (state_.step == steps_per_epoch() || finished()) {
      end_epoch(run);
      open = false;
    } else if (config_.checkpoint.every_minutes > 0 &&
               seconds_between(last_save_, Clock::now()) >= 60 * config_.checkpoint.every_minutes) {
      save(run, false);
    }
  }
  if (!saved()) save(run, false);
  if (!finished()) {
    result.interrupted = interrupt.requested();
    say(run, fmt::format("{} after update {} of {}; continue with --resume auto",
                         result.interrupted ? "interrupted" : "stopped", with_commas(state_.updates),
                         with_commas(config_.train.updates)));
  }
  progress_.clear();
  result.updates = state_.updates;
  result.epochs = state_.epoch;
  result.best_epoch = state_.best_epoch;
  result.best_top1 = state_.best_top1;
  // Before the first epoch ends, the loss so far.
  result.last_loss = std::isnan(state_.last_loss) && state_.epoch_samples > 0
                         ? state_.epoch_loss / static_cast<double>(state_.epoch_samples)
                         : state_.last_loss;
  result.last_top1 = state_.last_top1;
  result.images_per_s = images_per_second();
  result.peak_memory_mb = peak_resident_mb();
  result.device = options_.device;
  result.peak_device_memory_mb = peak_device_mb();
  return result;
}

void Training::give_up(RunDirectory& run, const OutOfMemoryError& error) {
  std::string text = fmt::format("{}; {}", error.what(), memory_advice(config_.train));
  const Ema* ema = learner_.ema();
  // What the device had no room for is the next update, unless its optimiser had begun.
  const bool whole =
      learner_.optimizer().updates() == state_.updates && (!ema || ema->updates() == state_.ema_updates);
  if (whole && state_.updates > 0) {
    save(run, false);
    text = fmt::format(
        "{}; update {} is saved: --resume auto continues, with a larger train.accumulation (now {}) "
        "in less memory",
        error.what(), with_commas(state_.updates), config_.train.accumulation);
  }
  run.log(text);
  throw OutOfMemoryError(text);
}

void Training::train_batch(RunDirectory& run, const Batch& batch) {
  const double rate =
      learning_rate(state_.updates, config_.train.updates, config_.schedule, config_.optimizer.learning_rate);
  const StepOutcome outcome = learner_.step(batch, state_.epoch, rate);
  ++state_.step;
  images_ += batch.size();
  window_images_ += batch.size();
  if (!outcome.stepped) {
    ++state_.skipped;
    if (outcome.overflowed) {
      say(run, fmt::format("epoch {} batch {}: gradients overflow: skipped, loss scale {:.0f} from now on",
                           state_.epoch, state_.step - 1, learner_.scaler()->scale()));
      return;
    }
    ++state_.bad_steps;
    say(run, fmt::format("epoch {} batch {}: loss {}, gradient norm {}: skipped ({} in a row)", state_.epoch,
                         state_.step - 1, outcome.loss, outcome.grad_norm, state_.bad_steps));
    require<Error>(
        state_.bad_steps < config_.train.bad_steps,
        "{}: {} batches in a row without a finite loss and gradient at update {}; {}", run.path().string(),
        state_.bad_steps, state_.updates,
        fs::exists(run.checkpoints().folder() / "last")
            ? "the last good checkpoint is kept"
            : fmt::format("no checkpoint was written yet; try a smaller optimizer.learning_rate (now {})",
                          config_.optimizer.learning_rate));
    return;
  }
  state_.bad_steps = 0;
  ++state_.updates;
  if (const Ema* ema = learner_.ema()) state_.ema_updates = ema->updates();
  const auto samples = static_cast<double>(batch.size());
  state_.window_loss += outcome.loss * samples;
  state_.window_samples += batch.size();
  state_.window_norm += outcome.grad_norm;
  ++state_.window_steps;
  state_.epoch_loss += outcome.loss * samples;
  state_.epoch_samples += batch.size();
  if (progress_.active()) {
    progress_.update(fmt::format("epoch {}", state_.epoch),
                     static_cast<double>(state_.step) / static_cast<double>(steps_per_epoch()),
                     fmt::format("loss {:.3f}  {} img/s", outcome.loss, format_si(images_per_second())));
  }
  if (state_.updates % config_.train.log_every == 0) show_step(run, outcome.loss, rate, outcome.grad_norm);
}

std::string Training::skipped_in_words() const {
  return state_.skipped > 0 ? fmt::format("  skipped {}", state_.skipped) : "";
}

void Training::show_step(RunDirectory& run, double loss, double rate, double norm) {
  const LossScaler* scaler = learner_.scaler();
  const double window_seconds = seconds_between(window_start_, Clock::now());
  const double rate_images = static_cast<double>(window_images_) / std::max(window_seconds, 1e-9);
  const double mean_loss = state_.window_loss / static_cast<double>(state_.window_samples);
  const double mean_norm = state_.window_norm / static_cast<double>(state_.window_steps);
  const double left =
      static_cast<double>((config_.train.updates - state_.updates) * config_.train.batch_size) /
      std::max(images_per_second(), 1e-9);
  std::string memory = format_bytes(1e6 * peak_resident_mb());
  if (options_.device.is_cuda()) memory += fmt::format(", device {}", format_bytes(1e6 * peak_device_mb()));
  say(run,
      fmt::format("epoch {:>3} [{:>5}/{} {:>3.0f}%]  loss {:.4f} ({:.4f})  lr {:.2e}  norm {:.2f}{}  {} "
                  "img/s  eta {}  mem {}{}",
                  state_.epoch, state_.step, steps_per_epoch(),
                  100 * static_cast<double>(state_.step) / static_cast<double>(steps_per_epoch()), loss,
                  mean_loss, rate, norm, scaler ? fmt::format("  scale {:.0f}", scaler->scale()) : "",
                  with_commas(std::llround(rate_images)), format_duration(left), memory, skipped_in_words()));
  Metrics metrics{{"epoch", static_cast<double>(state_.epoch)},
                  {"loss", mean_loss},
                  {"learning_rate", rate},
                  {"grad_norm", mean_norm},
                  {"skipped", static_cast<double>(state_.skipped)},
                  {"images_per_s", rate_images},
                  {"seconds", seconds_before_ + seconds_between(started_, Clock::now())}};
  if (scaler) metrics.emplace_back("loss_scale", scaler->scale());
  run.record("step", state_.updates, metrics);
  state_.window_loss = state_.window_norm = 0;
  state_.window_samples = state_.window_steps = 0;
  window_start_ = Clock::now();
  window_images_ = 0;
}

void Training::end_epoch(RunDirectory& run) {
  const bool last = state_.updates >= config_.train.updates;
  const double train_loss =
      state_.epoch_samples > 0 ? state_.epoch_loss / static_cast<double>(state_.epoch_samples) : std::nan("");
  state_.last_loss = train_loss;
  bool best = false;
  if (last || (state_.epoch + 1) % config_.train.eval_every == 0) {
    const auto begin = Clock::now();
    const Accuracy accuracy = evaluate_epoch(run, last);
    const double took = seconds_between(begin, Clock::now());
    evaluation_seconds_ += took;
    window_start_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(took));
    best = accuracy.top1 >= state_.best_top1;
    if (best) {
      state_.best_top1 = accuracy.top1;
      state_.best_epoch = state_.epoch;
    }
    state_.last_top1 = accuracy.top1;
    const double seconds = seconds_before_ + seconds_between(started_, Clock::now());
    say(run, fmt::format("epoch {:>3}/{}  train loss {:.4f}  {} loss {:.4f}  top-1 {:.2f} %  top-5 {:.2f} %  "
                         "{} img/s  {}{}{}",
                         state_.epoch, epochs_in_all() - 1, train_loss, splits_.holdout ? "hold-out" : "test",
                         accuracy.loss, accuracy.top1, accuracy.top5,
                         with_commas(std::llround(images_per_second())), format_duration(seconds),
                         skipped_in_words(), best ? "  best" : ""));
    const Metrics metrics{{"epoch", static_cast<double>(state_.epoch)},
                          {"train_loss", train_loss},
                          {"eval_loss", accuracy.loss},
                          {"eval_top1", accuracy.top1},
                          {"eval_top5", accuracy.top5},
                          {"skipped", static_cast<double>(state_.skipped)},
                          {"seconds", seconds}};
    run.record("epoch", state_.updates, metrics);
    run.summarise(state_.updates, metrics);
  }
  const std::int64_t done = state_.epoch + 1;
  close_epoch();
  const std::int64_t every = config_.checkpoint.every_epochs;
  if (last || best || (every > 0 && done % every == 0)) save(run, best);
}

Accuracy Training::evaluate_epoch(RunDirectory& run, bool last) {
  try {
    const EmaScope averaged(learner_.ema());
    const AutocastScope products(learner_.amp());
    return evaluate(learner_.model(), splits_.holdout ? splits_.holdout : splits_.test, splits_.preprocessing,
                    evaluation_batch, config_.data.workers);
  } catch (const OutOfMemoryError&) {
    // A run that has only its last evaluation left must do it anew.
    if (!last) close_epoch();
    if (!last) save(run, false);
    throw;
  }
}

void Training::close_epoch() {
  if (state_.step == steps_per_epoch()) {
    ++state_.epoch;
    state_.step = 0;
  }
  state_.epoch_loss = 0;
  state_.epoch_samples = 0;
}

void Training::save(RunDirectory& run, bool best) {
  state_.seconds = seconds_before_ + seconds_between(started_, Clock::now());
  const LossScaler* scaler = learner_.scaler();
  state_.loss_scale = scaler ? scaler->scale() : 0;
  state_.scale_updates = scaler ? scaler->state().good_updates : 0;
  run.sync();
  Checkpoint checkpoint{
      config_, splits_.preprocessing,       splits_.train->class_names(), state_, learner_.model().state(),
      {},      learner_.optimizer().state()};
  if (const Ema* ema = learner_.ema()) checkpoint.ema = ema->state();
  run.checkpoints().save(checkpoint, best);
  saved_updates_ = state_.updates;
  saved_epoch_ = state_.epoch;
  saved_step_ = state_.step;
  last_save_ = Clock::now();
}

void Training::finish(RunDirectory& run, TrainResult& result) {
  const Checkpoint best = read_checkpoint(run.path() / "checkpoints" / "best", CheckpointParts::weights);
  const std::unique_ptr<Model> model = load_model(best, "ema", options_.device);
  const Accuracy accuracy =
      evaluate(*model, splits_.test, splits_.preprocessing, evaluation_batch, config_.data.workers);
  result.test_top1 = accuracy.top1;
  const double peak = result.peak_device_memory_mb = peak_device_mb();
  say(run, fmt::format(
               "test  top-1 {:.2f} %  top-5 {:.2f} %  loss {:.4f}  (best checkpoint: epoch {}, {} weights)",
               accuracy.top1, accuracy.top5, accuracy.loss, best.state.best_epoch,
               best.ema.empty() ? "raw" : "ema"));
  const nlohmann::ordered_json json{
      {"updates", result.updates},
      {"epochs", result.epochs},
      {"best", {{"epoch", result.best_epoch}, {"top1", result.best_top1}}},
      {"last", {{"loss", result.last_loss}, {"top1", result.last_top1}}},
      {"test",
       {{"samples", accuracy.samples},
        {"loss", accuracy.loss},
        {"top1", accuracy.top1},
        {"top5", accuracy.top5}}},
      {"seconds", state_.seconds},
      {"images_per_s", images_ > 0 ? nlohmann::json(result.images_per_s) : nlohmann::json()},
      {"peak_memory_mb", result.peak_memory_mb},
      {"device", result.device.str()},
      {"peak_device_memory_mb", peak < 0 ? nlohmann::json() : nlohmann::json(peak)}};
  write_file_atomically(run.path() / "result.json", json.dump(2) + "\n");
}

}  // namespace gyre
