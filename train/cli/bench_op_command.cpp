#include <cmath>

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "bench/bench_op.h"
#include "train/cli/bench_report.h"
#include "train/cli/sweep_options.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  CommonOptions common;
  std::string groups = "c4";
  std::string channels = "16,32,64,96,128,256,512,1024";
  std::string directions = "forward,backward";
  std::string impls = "naive,flash";
  std::string products = "fewest";
  BenchOpOptions bench;
  SweepCommand sweep;
};

ordered_json row_json(const BenchOpRow& row, const BenchOpResult& result) {
  ordered_json json{{"op", "linear"},
                    {"group", row.group},
                    {"impl", row.impl},
                    {"kernel", row.kernel},
                    {"direction", name_of(row.direction)},
                    {"channels_in", row.channels},
                    {"channels_out", row.channels},
                    {"rows", result.rows},
                    {"threads", result.machine.threads},
                    {"dtype", "f32"},
                    {"ms_median", row.ms.median},
                    {"ms_min", row.ms.min},
                    {"ms_max", row.ms.max},
                    {"ms_spread", row.ms.spread},
                    {"gflops", row.gflops},
                    {"peak_fraction", row.peak_fraction},
                    {"ratio_to_standard", row.to_standard.median}};
  if (result.runs > 1) json["best_ratio_to_standard"] = row.to_standard.best;
  json["rel_l2"] = row.rel_l2();
  for (const auto& [name, value] : {std::pair("rel_l2_y", row.rel_l2_y),
                                    {"rel_l2_dx", row.rel_l2_dx},
                                    {"rel_l2_dw", row.rel_l2_dw},
                                    {"rel_l2_db", row.rel_l2_db}}) {
    if (!std::isnan(value)) json[name] = value;
  }
  return json;
}

void print_json(const BenchOpResult& result) {
  auto rows = ordered_json::array();
  for (const BenchOpRow& row : result.results) rows.push_back(row_json(row, result));
  const ordered_json json{
      {"machine", machine_json(result.machine)}, {"runs", result.runs}, {"results", rows}};
  fmt::print("{}\n", json.dump(2));
}

std::string error_text(double value) { return std::isnan(value) ? "" : fmt::format("{:.1e}", value); }

void print_text(const BenchOpResult& result) {
  print_machine(result.machine);
  fmt::print("layer    {} rows, f32; backward is dX, dW and db; dw is dW and db\n", with_commas(result.rows));
  fmt::print(
      "timed    the call alone on both sides: data is generated, memory allocated and weights packed\n");
  fmt::print("         before; standard is oneDNN with packed weights of the same total width\n\n");
  const int wide = result.runs > 1 ? 16 : 11;
  fmt::print("{:<6}  {:>8}  {:<8}  {:<8}  {:<16}  {:>9}  {:>19}  {:>6}  {:>7}  {:>6}  {:>{}}  {:>8}  {:>8}\n",
             "group", "channels", "way", "layer", "kernel", "ms", "range", "spread", "GFLOP/s", "peak",
             "vs standard", wide, "rel-L2", "of dW");
  for (const BenchOpRow& row : result.results) {
    const double first = row.direction == OpDirection::forward ? row.rel_l2_y : row.rel_l2_dx;
    fmt::print(
        "{:<6}  {:>8}  {:<8}  {:<8}  {:<16}  {:>9.3f}  {:>19}  {:>4.1f} %  {:>7.0f}  {:>4.0f} %  {:>{}}  "
        "{:>8}  {:>8}\n",
        row.group, row.channels, name_of(row.direction), row.impl, row.kernel, row.ms.median,
        range_text(row.ms, 3), 100 * row.ms.spread, row.gflops, 100 * row.peak_fraction,
        ratio_text(row.to_standard, result.runs), wide, error_text(first), error_text(row.rel_l2_dw));
  }
  fmt::print(
      "\nchannels: per group element, in and out; GFLOP/s: executed, of the products alone; rel-L2: of Y\n");
  fmt::print("or dX, and of dW, against f64\n");
  print_ratio_note(result.runs);
}

/// "fewest", "plain", or a count that each of the groups has.
int parse_products(const Options& options) {
  if (options.products == "fewest") return 0;
  if (options.products == "plain") return plain_products;
  try {
    const int count = parse_number<int>(options.products, {0, 64});
    for (const std::string& group : options.bench.groups) products_of(Group::get(group), count);
    return count;
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("--products: {}", error.what()));
  }
}

int run(Options& options) {
  BenchOpOptions& bench = options.bench;
  bench.groups = parse_list("--group", options.groups, [](const std::string& name) {
    Group::get(name);
    return name;
  });
  bench.channels = parse_list("--channels", options.channels, [](const std::string& text) {
    return parse_number<std::int64_t>(text, {1, 65536});
  });
  bench.directions = parse_list("--direction", options.directions, parse_op_direction);
  bench.impls = parse_backends("--impl", options.impls);
  bench.products = parse_products(options);
  prepare_cpu(options.common, 0, true, "bench op");
  if (options.sweep.cases > 0) return run_sweep(options.sweep, bench.groups, options.common.json);
  const BenchOpResult result = bench_op(bench);
  if (options.common.json) {
    print_json(result);
  } else {
    print_text(result);
  }
  return success;
}

}  // namespace

void add_bench_op_command(CLI::App& bench, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      bench.add_subcommand("op", "one linear layer: standard, naive and flash, forward and backward");
  const auto add_list = [&](const std::string& name, std::string& target, const std::string& doc,
                            const std::string& type) {
    command->add_option(name, target, fmt::format("{} (default: {})", doc, target))->type_name(type);
  };
  add_list("--group", options->groups, fmt::format("symmetries: {}", fmt::join(Group::names(), ", ")),
           "NAME,…");
  add_list("--channels", options->channels, "per group element, in and out", "N,N,…");
  add_list("--direction", options->directions, "forward, backward (dX, dW and db), dx, dw", "WAY,…");
  add_list("--impl", options->impls, "EQ-Linear backends beside standard", "NAME,…");
  add_number(*command, "--rows", options->bench.rows, {1, 1 << 24}, "batch times tokens");
  add_list("--products", options->products, "of the flash form: fewest, plain, or a count (c4: 5 or 6)", "N");
  add_repeat_options(*command, {options->bench.runs, options->bench.rounds, options->bench.seconds});
  add_sweep_options(*command, options->sweep);
  add_common_options(*command, options->common);
  add_pin_option(*command, options->common);
  add_tune_option(*command, options->common);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gyre::cli
