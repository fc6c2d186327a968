#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "bench/bench_train.h"
#include "train/cli/command.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

struct Options {
  CommonOptions common;
  std::string config;
  std::vector<std::string> overrides;
  BenchTrainOptions bench;
};

void print_json(const BenchTrainResult& result) {
  auto rows = nlohmann::ordered_json::array();
  for (const BenchTrainRow& row : result.results) {
    rows.push_back({{"impl", row.impl},
                    {"kernels", row.kernels},
                    {"images_per_s", row.images_per_s},
                    {"ms_per_step", row.ms_per_step},
                    {"ms_min", row.ms_min},
                    {"ms_max", row.ms_max},
                    {"ratio_to_standard", row.ratio_to_standard},
                    {"ratio_to_naive", row.ratio_to_naive},
                    {"peak_memory_mb", row.peak_memory_mb}});
  }
  const nlohmann::ordered_json json{
      {"machine",
       {{"cpu", result.machine.cpu}, {"threads", result.machine.threads}, {"simd", result.machine.simd}}},
      {"model", result.model},
      {"images", result.images},
      {"batch", result.batch},
      {"results", rows}};
  fmt::print("{}\n", json.dump(2));
}

void print_text(const BenchTrainResult& result) {
  fmt::print("model    {}, batch {}\n", result.model, result.batch);
  fmt::print("images   {}\n", result.images);
  fmt::print("machine  {}, {} thread{}, {}\n\n", result.machine.cpu, result.machine.threads,
             result.machine.threads == 1 ? "" : "s", result.machine.simd);
  fmt::print("{:<9}  {:>10}  {:>9}  {:>19}  {:>11}  {:>8}  {:>9}\n", "layers", "images/s", "ms/step", "range",
             "vs standard", "vs naive", "memory");
  for (const BenchTrainRow& row : result.results) {
    fmt::print("{:<9}  {:>10.0f}  {:>9.2f}  {:>19}  {:>10.2f}x  {:>7.2f}x  {:>9}\n", row.impl,
               row.images_per_s, row.ms_per_step, fmt::format("{:.2f} to {:.2f}", row.ms_min, row.ms_max),
               row.ratio_to_standard, row.ratio_to_naive, format_bytes(1e6 * row.peak_memory_mb));
  }
  fmt::print(
      "\nvs: time of the other per step / own time, above 1 is faster; memory: of tensors, without the "
      "images\n");
  for (const BenchTrainRow& row : result.results) {
    if (!row.kernels.empty()) fmt::print("{}: {}\n", row.impl, fmt::join(row.kernels, ", "));
  }
}

int run(Options& options) {
  if (!options.config.empty()) {
    options.bench.config = load_config(options.config, options.overrides);
  } else {
    for (const std::string& text : options.overrides) apply_override(options.bench.config, text);
  }
  prepare_cpu(options.common, options.bench.config.train.threads, true, "bench train");
  const BenchTrainResult result = bench_train(options.bench);
  if (options.common.json) {
    print_json(result);
  } else {
    print_text(result);
  }
  return success;
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* bench =
      app.add_subcommand("bench", "compare standard, naive and flash layers in speed and memory");
  bench->require_subcommand(1);
  CLI::App* command =
      bench->add_subcommand("train", "training steps of a model and of its twins at equal width");
  command->add_option("CONFIG", options->config, "YAML file (default: the default configuration)")
      ->type_name("");
  add_set_option(*command, options->overrides);
  add_number(*command, "--rounds", options->bench.rounds, {1, 1000}, "measurements of each, alternating");
  add_number(*command, "--seconds", options->bench.seconds, {.low = 0, .high = 3600, .open_low = true},
             "length of one measurement");
  add_common_options(*command, options->common);
  add_pin_option(*command, options->common);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
  add_bench_op_command(*bench, action);
}

}  // namespace gyre::cli
