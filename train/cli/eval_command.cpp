#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "train/cli/command.h"
#include "train/evaluate.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

struct Options {
  CommonOptions common;
  std::string checkpoint;
  EvalOptions eval;
};

void print_json(const EvalResult& result) {
  auto rotations = nlohmann::ordered_json::array();
  for (const RotationResult& r : result.rotations) {
    rotations.push_back({{"degrees", r.degrees},
                         {"top1", r.accuracy.top1},
                         {"loss", r.accuracy.loss},
                         {"max_logit_change", r.max_logit_change}});
    if (r.mirrored) rotations.back()["mirrored"] = true;
  }
  const double peak = result.peak_device_memory_mb;
  const nlohmann::ordered_json json{
      {"model", result.model},
      {"checkpoint", result.checkpoint.string()},
      {"weights", result.weights},
      {"split", result.split},
      {"backend", result.backend},
      {"kernels", result.kernels},
      {"device", result.device.str()},
      {"images_per_s", result.images_per_s},
      {"peak_device_memory_mb", peak < 0 ? nlohmann::json() : nlohmann::json(peak)},
      {"samples", result.accuracy.samples},
      {"loss", result.accuracy.loss},
      {"top1", result.accuracy.top1},
      {"top5", result.accuracy.top5},
      {"rotations", rotations}};
  fmt::print("{}\n", json.dump(2));
}

void print_text(const EvalResult& result) {
  fmt::print("model          {}\n", result.model);
  fmt::print("checkpoint     {} ({} weights)\n", result.checkpoint.string(), result.weights);
  fmt::print("backend        {} ({})\n", result.backend, fmt::join(result.kernels, ", "));
  fmt::print("preprocessing  {}\n", result.preprocessing);
  fmt::print("device         {}, {} images/s", describe(result.device), format_si(result.images_per_s));
  if (result.device.is_cuda())
    fmt::print(", peak memory {}", format_bytes(1e6 * result.peak_device_memory_mb));
  fmt::print("\n");
  fmt::print("data           {}, {} images\n\n", result.split, with_commas(result.accuracy.samples));
  fmt::print("top-1 {:.2f} %   top-5 {:.2f} %   loss {:.4f}\n", result.accuracy.top1, result.accuracy.top5,
             result.accuracy.loss);
  if (result.rotations.empty()) return;
  fmt::print("\n{:>8}  {:>9}  {:>8}  {}\n", "rotation", "top-1", "loss", "largest change of a logit");
  for (const RotationResult& r : result.rotations) {
    fmt::print("{:>7}°  {:>7.2f} %  {:>8.4f}  {:.2e} of the largest{}\n", r.degrees, r.accuracy.top1,
               r.accuracy.loss, r.max_logit_change, r.mirrored ? ", mirrored" : "");
  }
}

EvalResult measure(const EvalOptions& options) {
  try {
    return evaluate_checkpoint(options);
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(
        fmt::format("{}; a smaller --batch-size (now {}) needs less", error.what(), options.batch_size));
  }
}

int run(Options& options) {
  options.eval.device = prepare_machine(options.common, 0, false);
  if (options.eval.mirrors && !options.eval.rotations) throw UsageError("--mirrors needs --rotations");
  options.eval.checkpoint = options.checkpoint;
  options.eval.progress = !options.common.json;
  if (!options.common.backend.empty())
    options.eval.backend = kernels::parse_eq_backend(options.common.backend);
  const EvalResult result = measure(options.eval);
  if (options.common.json) {
    print_json(result);
  } else {
    print_text(result);
  }
  return success;
}

}  // namespace

void add_eval_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("eval", "measure the accuracy of a checkpoint, and how it changes when images turn");
  command->add_option("CHECKPOINT", options->checkpoint, "checkpoint or run directory")
      ->type_name("")
      ->required();
  command->add_option("--data", options->eval.data_path, "folder of the data (default: as trained)")
      ->type_name("DIR");
  add_choice(*command, "--split", options->eval.split, {"test", "holdout", "train"}, "which images", "test");
  add_choice(*command, "--weights", options->eval.weights, {"ema", "raw"}, "averaged or raw weights", "ema");
  add_number(*command, "--batch-size", options->eval.batch_size, {1, 65536}, "images per forward pass");
  add_number(*command, "--workers", options->eval.workers, {0, 256}, "loader threads");
  command->add_flag("--rotations", options->eval.rotations,
                    "also turn all images by 90, 180 and 270 degrees (default: off)");
  command->add_flag("--mirrors", options->eval.mirrors,
                    "with --rotations: also mirror the images before they turn (default: off)");
  add_common_options(*command, options->common);
  add_backend_option(*command, options->common);
  add_pin_option(*command, options->common);
  add_tune_option(*command, options->common);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gyre::cli
