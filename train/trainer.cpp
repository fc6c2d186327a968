#include "train/trainer.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/cuda/runtime.h"
#include "core/deterministic.h"
#include "core/file.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "kernels/eq_choice.h"
#include "train/banner.h"
#include "train/calibrate.h"
#include "train/finetune.h"
#include "train/resume.h"
#include "train/training.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

constexpr const char* kernels_name = "kernels.json";

std::int64_t parameter_bytes(Learner& learner) {
  return learner.model().parameter_count() * static_cast<std::int64_t>(sizeof(float));
}

/// Turns epochs or the time budget into updates, once; later runs read the number.
void settle_updates(Config& config, const DataSplits& splits, Device device, bool quiet) {
  const Sampler sampler = training_sampler(config, *splits.train);
  if (config.train.updates > 0) return;
  if (config.train.time_budget.empty()) {
    config.train.updates = config.train.epochs * sampler.batches();
    return;
  }
  const double budget = parse_duration(config.train.time_budget);
  if (!quiet) {
    fmt::print("calibration: measuring the speed of this machine\n");
    std::fflush(stdout);
  }
  const Pace pace = [&] {
    try {
      return measure_pace(config, splits, device);
    } catch (const OutOfMemoryError& error) {
      throw OutOfMemoryError(fmt::format("{}; {}", error.what(), memory_advice(config.train)));
    }
  }();
  config.train.updates = updates_in(budget, pace, sampler.batches(), config.train.eval_every);
  if (!quiet)
    fmt::print("calibration: {:.2f} ms per update, {:.2f} s per evaluation: {} updates in {}\n",
               1e3 * pace.update, pace.evaluation, with_commas(config.train.updates),
               config.train.time_budget);
}

/// What digits depend on beside the configuration that a resumed run must keep.
struct KernelChoice {
  std::string tune_table;  ///< id; empty: the fixed rule
  std::string device;      ///< "cpu" or "NVIDIA H200"
  std::string amp;         ///< train.amp
  bool operator==(const KernelChoice&) const = default;
};

KernelChoice choice_on(Device device, const TrainConfig& train) {
  if (device.is_cuda()) return {"", cuda::device_info(device.index).name, train.amp};
  return {kernels::eq_table_id(), "cpu", train.amp};
}

/// As kernels.json of the run says; the fixed rule on the CPU where it says nothing.
KernelChoice stored_choice(const fs::path& run) {
  const fs::path file = run / kernels_name;
  if (!fs::exists(file)) return {"", "cpu", "off"};
  const auto json = nlohmann::json::parse(read_file(file), nullptr, false);
  require<FileError>(json.is_object(), "{}: not valid JSON", file.string());
  const auto text = [&](const char* key, const char* otherwise) {
    const auto value = json.value(key, nlohmann::json());
    return value.is_string() ? value.get<std::string>() : otherwise;
  };
  return {text("tune_table", ""), text("device", "cpu"), text("amp", "off")};
}

void store_kernels(const fs::path& run, const KernelChoice& choice, const std::vector<std::string>& names) {
  const auto& [table, name, amp] = choice;
  const nlohmann::ordered_json json{
      {"tune_table", table.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(table)},
      {"device", name},
      {"amp", amp},
      {"threads", num_threads()},
      {"kernels", names}};
  write_file_atomically(run / kernels_name, json.dump(2) + "\n");
}

/// What changes digits from here on, one sentence each.
std::vector<std::string> differences(const fs::path& run, const KernelChoice& now) {
  const KernelChoice before = stored_choice(run);
  std::vector<std::string> sentences;
  if (before.amp != now.amp)
    sentences.push_back(
        fmt::format("products were computed with train.amp: {}, now with {}", before.amp, now.amp));
  if (before.tune_table == now.tune_table && before.device == now.device) return sentences;
  const auto text = [&](const KernelChoice& choice) {
    return (choice.tune_table.empty() ? "the fixed rule" : "tune table " + choice.tune_table) +
           (before.device == now.device ? "" : " on " + choice.device);
  };
  sentences.push_back(
      fmt::format("kernels were chosen by {}, now by {}: results may differ in their last digits",
                  text(before), text(now)));
  return sentences;
}

/// The device that a result names, present or not.
Device device_of(const nlohmann::json& node) {
  const std::string text = node.is_string() ? node.get<std::string>() : "";
  int index = 0;
  const auto parsed =
      std::from_chars(text.data() + std::min<std::size_t>(5, text.size()), text.data() + text.size(), index);
  return text.starts_with("cuda:") && parsed.ec == std::errc() ? Device::cuda(index) : Device::cpu();
}

/// What result.json of a finished run says.
std::optional<TrainResult> finished_result(const fs::path& run) {
  const fs::path file = run / "result.json";
  if (!fs::exists(file)) return std::nullopt;
  const auto json = nlohmann::json::parse(read_file(file), nullptr, false);
  require<FileError>(json.is_object(), "{}: not valid JSON", file.string());
  const auto number = [](const nlohmann::json& node, double otherwise) {
    return node.is_number() ? node.get<double>() : otherwise;
  };
  TrainResult result;
  result.run = run;
  result.updates = static_cast<std::int64_t>(number(json.value("updates", nlohmann::json()), 0));
  result.epochs = static_cast<std::int64_t>(number(json.value("epochs", nlohmann::json()), 0));
  result.best_epoch =
      static_cast<std::int64_t>(number(json.value("/best/epoch"_json_pointer, nlohmann::json()), -1));
  result.best_top1 = number(json.value("/best/top1"_json_pointer, nlohmann::json()), -1);
  result.last_loss = number(json.value("/last/loss"_json_pointer, nlohmann::json()), 0);
  result.last_top1 = number(json.value("/last/top1"_json_pointer, nlohmann::json()), -1);
  result.test_top1 = number(json.value("/test/top1"_json_pointer, nlohmann::json()), -1);
  result.images_per_s = number(json.value("images_per_s", nlohmann::json()), 0);
  result.peak_memory_mb = number(json.value("peak_memory_mb", nlohmann::json()), 0);
  result.device = device_of(json.value("device", nlohmann::json()));
  result.peak_device_memory_mb = number(json.value("peak_device_memory_mb", nlohmann::json()), -1);
  result.tune_table = stored_choice(run).tune_table;
  result.already_complete = true;
  return result;
}

/// Model settings of a fine-tuning run, and the checkpoint whose weights it begins with: none where the run
/// has a checkpoint of its own, or comes from scratch. `stored` is the configuration of a resumed run.
std::optional<Checkpoint> adopt_parent(Config& config, const Config* stored, bool has_weights,
                                       const DataSplits& splits) {
  if (config.finetune.checkpoint.empty()) return std::nullopt;
  // The run's own parent, wherever links point by now.
  if (stored && !stored->finetune.checkpoint.empty())
    config.finetune.checkpoint = stored->finetune.checkpoint;
  std::optional<Checkpoint> parent;
  if (!has_weights) {
    parent = read_parent(config.finetune);
    config.finetune.checkpoint = fs::canonical(parent->path).string();
  }
  const ModelConfig& model = stored ? stored->model : parent->config.model;
  require<ConfigError>(splits.preprocessing.channels == model.in_channels,
                       "{}: takes images of {} channels, {} has {}", config.finetune.checkpoint,
                       model.in_channels, splits.train->name(), splits.preprocessing.channels);
  config.model = adopt_model(config.model, model, config.finetune.checkpoint);
  if (parent && (parent->preprocessing.mean != splits.preprocessing.mean ||
                 parent->preprocessing.std != splits.preprocessing.std))
    fmt::print(
        stderr,
        "gyre: warning: images are normalised by mean {}, std {}, but {} was trained with mean {}, std "
        "{}; set data.mean and data.std\n",
        fmt::join(splits.preprocessing.mean, " "), fmt::join(splits.preprocessing.std, " "),
        parent->path.string(), fmt::join(parent->preprocessing.mean, " "),
        fmt::join(parent->preprocessing.std, " "));
  return parent;
}

std::string in_words(const LossScaler* scaler) {
  return scaler ? fmt::format(", loss scale {:.0f}", scaler->scale()) : "";
}

void announce(const std::string& text, const TrainOptions& options) {
  if (options.json) return;
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

}  // namespace

TrainResult run_training(Config config, const TrainOptions& options) {
  set_deterministic(config.train.deterministic);
  const fs::path out = options.out.empty() ? fs::path("runs") / options.config_name : options.out;
  std::optional<ResumePoint> point;
  if (options.resume)
    point = find_resume_point(*options.resume, *options.resume == "auto" ? out : options.out);
  if (!point && !options.dry_run) RunDirectory::require_free(out);

  const DataSplits splits = open_data(config.data, config.train.seed);
  Config stored;
  if (point) stored = RunDirectory::stored_config(point->run);
  const std::optional<Checkpoint> parent =
      adopt_parent(config, point ? &stored : nullptr, point && point->checkpoint, splits);
  config.model = fit_model(config.model, *splits.train, splits.preprocessing);
  if (point) {
    require_same_training(stored, config, point->run);
    config.train.updates = stored.train.updates;
    for (const std::string& reason : point->skipped)
      fmt::print(stderr, "gyre: warning: skipped {}\n", reason);
    if (const auto done = finished_result(point->run)) {
      announce(fmt::format("{}: already complete, {} updates, test top-1 {:.2f} %", point->run.string(),
                           with_commas(done->updates), done->test_top1),
               options);
      TrainResult result = *done;
      result.parent = config.finetune.checkpoint;
      return result;
    }
  }
  const std::optional<DType> products = amp_type(config.train, options.device);  // refused before long work
  settle_updates(config, splits, options.device, options.json);

  Transfer transfer;
  std::function<void(Model&)> prepare;
  if (parent) {
    prepare = [&](Model& model) {
      transfer = take_over(model, *parent, config.finetune, splits.train->class_names());
    };
  }
  if (options.device.is_cuda()) reset_peak_memory(options.device);
  Training training(config, splits, options, prepare);
  if (!options.json)
    fmt::print("{}", banner(config, splits, training.learner(), training.steps_per_epoch(), options.device));
  if (parent) announce(describe(*parent, transfer, options.verbose), options);
  if (options.dry_run) {
    const double loss = training.try_batch();
    announce(fmt::format("dry run: one batch, loss {:.4f}; nothing was written", loss), options);
    TrainResult result;
    result.run = out;
    result.last_loss = loss;
    result.device = options.device;
    return result;
  }

  const KernelChoice choice = choice_on(options.device, config.train);
  std::unique_ptr<RunDirectory> run;
  if (point) {
    const std::vector<std::string> changes = differences(point->run, choice);
    for (const std::string& change : changes)
      fmt::print(stderr, "gyre: warning: {}: {}\n", point->run.string(), change);
    if (point->checkpoint) training.load(read_checkpoint(*point->checkpoint));
    run = RunDirectory::reopen(point->run, training.state().updates);
    for (const std::string& change : changes) run->log(change);
    announce(fmt::format("resuming {} at update {} (epoch {}, batch {}){}", point->run.string(),
                         with_commas(training.state().updates), training.state().epoch, training.state().step,
                         in_words(training.learner().scaler())),
             options);
  } else {
    // `best`, `last` and the one being written: weights, averages and two moments each.
    run = RunDirectory::create(
        out, config, static_cast<std::size_t>(12 * parameter_bytes(training.learner()) + 1'000'000));
    announce(fmt::format("run {}", out.string()), options);
  }
  if (parent) run->log(describe(*parent, transfer, true));
  store_kernels(run->path(), choice,
                training.learner().model().kernel_names(config.train.batch_size, products));
  TrainResult result = training.run(*run);
  result.tune_table = choice.tune_table;
  result.parent = config.finetune.checkpoint;
  result.transfer = std::move(transfer);
  if (!result.interrupted && result.updates >= config.train.updates) training.finish(*run, result);
  return result;
}

}  // namespace gyre
