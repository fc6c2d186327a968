#include <algorithm>
#include <map>

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "bench/bench_model.h"
#include "train/cli/bench_report.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  CommonOptions common;
  std::string config;
  std::vector<std::string> shorthands, overrides;  ///< of keys; the latter come last
  std::string impls = "naive,flash";
  bool profile = false;
  BenchModelOptions bench;
};

ordered_json row_json(const BenchModelRow& row, int runs, bool profile) {
  ordered_json json{{"impl", row.impl},
                    {"kernels", row.kernels},
                    {"images_per_s", row.images_per_s},
                    {"ms_per_step", row.ms.median},
                    {"ms_min", row.ms.min},
                    {"ms_max", row.ms.max},
                    {"ms_spread", row.ms.spread},
                    {"linear_share", row.linear_share},
                    {"ratio_to_standard", row.to_standard.median}};
  // Null where naive did not run.
  json["ratio_to_naive"] = row.to_naive.median > 0 ? ordered_json(row.to_naive.median) : ordered_json();
  if (runs > 1) {
    json["best_ratio_to_standard"] = row.to_standard.best;
    json["best_ratio_to_naive"] = row.to_naive.best > 0 ? ordered_json(row.to_naive.best) : ordered_json();
  }
  json["peak_memory_mb"] = row.peak_memory_mb;
  if (profile) {
    json["profile"] = ordered_json::array();
    const double steps = static_cast<double>(row.profiled_steps);
    for (const Profile::Entry& entry : row.profile) {
      json["profile"].push_back({{"op", entry.name},
                                 {"calls_per_step", static_cast<double>(entry.calls) / steps},
                                 {"ms_per_step", 1e3 * entry.seconds / steps}});
    }
  }
  return json;
}

void print_json(const BenchModelResult& result, bool profile) {
  auto rows = ordered_json::array();
  for (const BenchModelRow& row : result.results) rows.push_back(row_json(row, result.runs, profile));
  const ordered_json json{{"machine", machine_json(result.machine)},
                          {"device", result.device.str()},
                          {"model", result.model},
                          {"images", result.images},
                          {"batch", result.batch},
                          {"runs", result.runs},
                          {"results", rows}};
  fmt::print("{}\n", json.dump(2));
}

double seconds_of(const BenchModelRow& row, const std::string& operation) {
  double seconds = 0;
  for (const Profile::Entry& entry : row.profile) seconds += entry.name == operation ? entry.seconds : 0;
  return seconds;
}

/// Operations in rows, implementations in columns; longest first, what is left over last.
void print_profile(const BenchModelResult& result) {
  std::map<std::string, double> longest;
  for (const BenchModelRow& row : result.results) {
    for (const Profile::Entry& entry : row.profile) {
      double& share = longest[entry.name];
      share = std::max(share, entry.seconds / row.profiled_seconds);
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, share] : longest) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    if ((a == "other") != (b == "other")) return b == "other";
    return longest[a] > longest[b];
  });
  fmt::print("\n{:<24}", "ms per step (share)");
  for (const BenchModelRow& row : result.results) fmt::print("  {:>18}", row.impl);
  for (const std::string& name : names) {
    fmt::print("\n{:<24}", name);
    for (const BenchModelRow& row : result.results) {
      const double seconds = seconds_of(row, name), steps = static_cast<double>(row.profiled_steps);
      const std::string text =
          fmt::format("{:.2f} ({:>4.1f} %)", 1e3 * seconds / steps, 100 * seconds / row.profiled_seconds);
      fmt::print("  {:>18}", seconds > 0 ? text : "");
    }
  }
  fmt::print("\n");
}

void print_text(const BenchModelResult& result, const Options& options) {
  fmt::print("model    {}, batch {}, {}\n", result.model, result.batch,
             options.bench.training ? "whole updates" : "inference");
  fmt::print("images   {}\n", result.images);
  print_machine(result.machine);
  if (result.device.is_cuda()) fmt::print("device   {}\n", describe(result.device));
  fmt::print("timed    steps alone; batches are in memory, models are built before\n\n");
  const int wide = result.runs > 1 ? 16 : 11;
  fmt::print("{:<9}  {:>10}  {:>9}  {:>19}  {:>6}  {:>6}  {:>{}}  {:>{}}  {:>9}\n", "layers", "images/s",
             "ms/step", "range", "spread", "linear", "vs standard", wide, "vs naive", wide, "memory");
  for (const BenchModelRow& row : result.results) {
    fmt::print("{:<9}  {:>10.{}f}  {:>9.2f}  {:>19}  {:>4.1f} %  {:>4.0f} %  {:>{}}  {:>{}}  {:>9}\n",
               row.impl, row.images_per_s, row.images_per_s < 100 ? 1 : 0, row.ms.median,
               range_text(row.ms, 2), 100 * row.ms.spread, 100 * row.linear_share,
               ratio_text(row.to_standard, result.runs), wide,
               row.to_naive.median > 0 ? ratio_text(row.to_naive, result.runs) : "-", wide,
               format_bytes(1e6 * row.peak_memory_mb));
  }
  fmt::print("\nlinear: share of the time in linear layers; memory: of tensors, without the images\n");
  print_ratio_note(result.runs);
  for (const BenchModelRow& row : result.results) {
    if (!row.kernels.empty()) fmt::print("{}: {}\n", row.impl, fmt::join(row.kernels, ", "));
  }
  if (options.profile) print_profile(result);
}

int run(Options& options) {
  Config& config = options.bench.config;
  std::vector<std::string> overrides = options.shorthands;
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  if (!options.config.empty()) {
    config = load_config(options.config, overrides);
  } else {
    for (const std::string& text : overrides) apply_override(config, text);
    options.bench.random_images = true;
  }
  options.bench.impls = parse_backends("--impl", options.impls);
  options.bench.device = prepare_machine(options.common, config.train.threads, true);
  const BenchModelResult result = bench_model(options.bench);
  if (options.common.json) {
    print_json(result, options.profile);
  } else {
    print_text(result, options);
  }
  return success;
}

/// `name` stands for --set `key`.
void add_shorthand(CLI::App& command, const std::string& name, const std::string& key,
                   std::vector<std::string>& shorthands, const std::string& type) {
  command
      .add_option_function<std::string>(
          name, [&shorthands, key](const std::string& text) { shorthands.push_back(key + "=" + text); },
          fmt::format("short for --set {}={} (default: as configured)", key, type))
      ->type_name(type);
}

void add_command(CLI::App& bench, Action& action, bool training) {
  const auto options = std::make_shared<Options>();
  options->bench.training = training;
  CLI::App* command =
      training ? bench.add_subcommand("train", "training steps of a model and of its twins at equal width")
               : bench.add_subcommand("model", "inference of a model and of its twins at equal width");
  command
      ->add_option("CONFIG", options->config,
                   "YAML file, whose images are read (default: the default configuration, random images)")
      ->type_name("");
  add_shorthand(*command, "--model", "model.name", options->shorthands, "NAME");
  add_shorthand(*command, "--image-size", "model.image_size", options->shorthands, "N");
  add_shorthand(*command, "--batch", "train.batch_size", options->shorthands, "N");
  add_set_option(*command, options->overrides);
  command->add_option("--impl", options->impls, "EQ-Linear backends beside standard (default: naive,flash)")
      ->type_name("NAME,…");
  command->add_flag("--profile", options->profile, "also print the time by operation (default: off)");
  add_repeat_options(*command, {options->bench.runs, options->bench.rounds, options->bench.seconds});
  add_common_options(*command, options->common);
  add_pin_option(*command, options->common);
  add_tune_option(*command, options->common);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace

void add_bench_model_commands(CLI::App& bench, Action& action) {
  add_command(bench, action, false);
  add_command(bench, action, true);
}

}  // namespace gyre::cli
