#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "bench/bench_op.h"
#include "core/group.h"
#include "train/cli/command.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

struct Options {
  CommonOptions common;
  std::string channels = "16,32,64,96,128,256,512,1024";
  BenchOpOptions bench;
};

std::vector<std::int64_t> parse_list(std::string_view text) {
  std::vector<std::int64_t> values;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    values.push_back(parse_number<std::int64_t>(text.substr(at, end - at), {1, 65536}));
    at = end + 1;
  }
  return values;
}

void print_json(const BenchOpResult& result) {
  auto rows = nlohmann::ordered_json::array();
  for (const BenchOpRow& row : result.results) {
    rows.push_back({{"op", "linear"},
                    {"group", result.group},
                    {"impl", row.impl},
                    {"kernel", row.kernel},
                    {"direction", row.direction},
                    {"channels_in", row.channels},
                    {"channels_out", row.channels},
                    {"rows", result.rows},
                    {"threads", result.machine.threads},
                    {"dtype", "f32"},
                    {"ms_median", row.ms_median},
                    {"ms_min", row.ms_min},
                    {"ms_max", row.ms_max},
                    {"gflops", row.gflops},
                    {"peak_fraction", row.peak_fraction},
                    {"ratio_to_standard", row.ratio_to_standard},
                    {"rel_l2", row.rel_l2}});
  }
  const nlohmann::ordered_json json{{"machine",
                                     {{"cpu", result.machine.cpu},
                                      {"threads", result.machine.threads},
                                      {"simd", result.machine.simd},
                                      {"peak_gflops", result.peak_gflops}}},
                                    {"results", rows}};
  fmt::print("{}\n", json.dump(2));
}

void print_text(const BenchOpResult& result) {
  fmt::print("machine  {}, {} thread{}, {}, {:.0f} GFLOP/s of multiply-adds\n", result.machine.cpu,
             result.machine.threads, result.machine.threads == 1 ? "" : "s", result.machine.simd,
             result.peak_gflops);
  fmt::print("layer    group {}, {} rows, f32; backward is dX, dW and db\n", result.group,
             with_commas(result.rows));
  fmt::print(
      "timed    the call alone, weights packed before it; data is generated and allocated outside\n\n");
  fmt::print("{:>8}  {:<8}  {:<8}  {:<16}  {:>9}  {:>17}  {:>7}  {:>6}  {:>11}  {:>8}\n", "channels", "way",
             "layer", "kernel", "ms", "range", "GFLOP/s", "peak", "vs standard", "rel-L2");
  for (const BenchOpRow& row : result.results) {
    fmt::print("{:>8}  {:<8}  {:<8}  {:<16}  {:>9.3f}  {:>17}  {:>7.0f}  {:>4.0f} %  {:>10.2f}x  {:>8.1e}\n",
               row.channels, row.direction, row.impl, row.kernel, row.ms_median,
               fmt::format("{:.3f} to {:.3f}", row.ms_min, row.ms_max), row.gflops, 100 * row.peak_fraction,
               row.ratio_to_standard, row.rel_l2);
  }
  fmt::print(
      "\nchannels: per group element, in and out; GFLOP/s: executed; vs standard: above 1 is faster\n");
}

int run(Options& options) {
  try {
    options.bench.channels = parse_list(options.channels);
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("--channels: {}", error.what()));
  }
  const Group& group = Group::get(options.bench.group);
  const int fewest = group.fewest_form().products(), plain = group.plain_form().products();
  const int products = options.bench.products;
  require<UsageError>(products == 0 || products == fewest || products == plain,
                      "--products: {} is not one of 0, {}, {} of group {}", products, fewest, plain,
                      options.bench.group);
  prepare_cpu(options.common, 0, true, "bench op");
  const BenchOpResult result = bench_op(options.bench);
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
  const auto names = Group::names();
  add_choice(*command, "--group", options->bench.group, {names.begin(), names.end()}, "symmetry", "c4");
  command
      ->add_option("--channels", options->channels,
                   "per group element, in and out (default: " + options->channels + ")")
      ->type_name("N,N,…");
  add_number(*command, "--rows", options->bench.rows, {1, 1 << 24}, "batch times tokens");
  add_number(*command, "--products", options->bench.products, {0, 64},
             "of the flash form; 0: fewest (c4: 5 or 6)");
  add_number(*command, "--rounds", options->bench.rounds, {1, 1000}, "measurements of each, alternating");
  add_number(*command, "--seconds", options->bench.seconds, {.low = 0, .high = 3600, .open_low = true},
             "length of one measurement");
  add_common_options(*command, options->common);
  add_pin_option(*command, options->common);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gyre::cli
