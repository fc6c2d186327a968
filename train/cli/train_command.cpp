#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "train/cli/command.h"
#include "train/config.h"
#include "train/trainer.h"

namespace gyre::cli {
namespace {

struct Options {
  CommonOptions common;
  std::string parent;  ///< of finetune
  std::string config;
  std::vector<std::string> overrides;
  std::string out;
  TrainOptions train;
};

std::vector<std::string> names_of(const std::vector<TakenTensor>& tensors) {
  std::vector<std::string> names;
  for (const TakenTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

/// Counts and percentages that were never reached are -1: null in JSON.
template <class T>
nlohmann::ordered_json reached(T value) {
  return value < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
}

void print_json(const TrainResult& result) {
  nlohmann::ordered_json json{
      {"run", result.run.string()},
      {"complete", result.test_top1 >= 0},  // the test comes last
      {"steps", result.updates},
      {"epochs", result.epochs},
      {"best", {{"epoch", reached(result.best_epoch)}, {"top1", reached(result.best_top1)}}},
      {"last", {{"loss", result.last_loss}, {"top1", reached(result.last_top1)}}},
      {"test", {{"top1", reached(result.test_top1)}}},
      {"tune_table", result.tune_table.empty() ? nlohmann::ordered_json(nullptr)
                                               : nlohmann::ordered_json(result.tune_table)},
      {"images_per_s", result.images_per_s},
      {"peak_memory_mb", result.peak_memory_mb},
      {"device", result.device.str()},
      {"peak_device_memory_mb", reached(result.peak_device_memory_mb)}};
  if (!result.parent.empty()) {
    json["parent"] = result.parent.string();
    json["transfer"] = {{"kept", result.transfer.kept.size()},
                        {"resampled", names_of(result.transfer.resampled)},
                        {"new", names_of(result.transfer.initialised)}};
  }
  fmt::print("{}\n", json.dump(2));
}

int run(Options& options) {
  std::vector<std::string> overrides = options.overrides;
  if (!options.parent.empty()) overrides.push_back("finetune.checkpoint=" + options.parent);
  Config config = load_config(options.config, overrides);
  if (!options.common.backend.empty()) {
    config.model.backend = options.common.backend;
    config.model.given.insert("backend");
  }
  if (options.common.threads > 0) config.train.threads = options.common.threads;
  options.train.device = prepare_machine(options.common, config.train.threads, true);
  options.train.out = options.out;
  options.train.config_name = std::filesystem::path(options.config).stem().string();
  options.train.json = options.common.json;
  const TrainResult result = run_training(std::move(config), options.train);
  if (options.common.json) print_json(result);
  return result.interrupted ? interrupted : success;
}

/// What both commands take after their checkpoint.
void add_run_options(CLI::App* command, const std::shared_ptr<Options>& options, Action& action) {
  command->add_option("CONFIG", options->config, "YAML file; its keys and their defaults stand below")
      ->type_name("")
      ->required();
  add_set_option(*command, options->overrides);
  command
      ->add_option("--out", options->out, "run directory (default: runs/NAME, after the configuration file)")
      ->type_name("DIR");
  const auto resume = [options](const CLI::results_t& words) {
    options->train.resume = words.empty() || words.front().empty() ? "auto" : words.front();
    return true;
  };
  command
      ->add_option("--resume", resume,
                   "continue the run in --out (auto, the value if none is given), or from a checkpoint or "
                   "run directory")
      ->type_name("[auto|PATH]")
      ->expected(0, 1);
  command->add_flag("--dry-run", options->train.dry_run,
                    "check everything and do one batch forward and backward; writes nothing (default: off)");
  add_number(*command, "--max-steps", options->train.max_steps, {0, 1'000'000'000'000},
             "stop and save after this many updates in all; 0: no limit");
  add_common_options(*command, options->common);
  add_backend_option(*command, options->common);
  add_pin_option(*command, options->common);
  add_tune_option(*command, options->common);
  command->footer([] {
    return "Configuration, with defaults, legal values and meaning:\n\n" + config_help() +
           "\nExit codes: 0 success, 1 failure, 2 wrong use, 130 interrupted after saving.";
  });
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace

void add_train_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("train", "train a model as a YAML file says");
  add_run_options(command, std::make_shared<Options>(), action);
}

void add_finetune_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("finetune", "train on from a checkpoint, for other classes or another image size");
  command
      ->add_option("CHECKPOINT", options->parent,
                   "checkpoint or run directory whose weights and model settings are taken over")
      ->type_name("")
      ->required();
  command->add_flag("--verbose", options->train.verbose,
                    "list every tensor, also those kept as they are (default: off; the log has them all)");
  add_run_options(command, options, action);
}

}  // namespace gyre::cli
