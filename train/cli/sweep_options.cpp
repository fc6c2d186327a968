#include "train/cli/sweep_options.h"

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "train/cli/bench_report.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

bool has_gelu(const SweepRow& row) { return row.sizes.activation == kernels::Activation::gelu; }

void print_json(const SweepResult& result) {
  auto rows = nlohmann::ordered_json::array();
  for (const SweepRow& row : result.rows) {
    rows.push_back({{"group", row.sizes.group},
                    {"direction", name_of(row.direction)},
                    {"rows", row.sizes.rows},
                    {"channels_in", row.sizes.channels_in},
                    {"channels_out", row.sizes.channels_out},
                    {"bias", row.sizes.bias},
                    {"activation", has_gelu(row) ? "gelu" : "none"},
                    {"threads", row.threads},
                    {"kernel", row.kernel},
                    {"ms_median", row.ms},
                    {"ms_standard", row.ms_standard},
                    {"ratio_to_standard", row.ratio.median},
                    {"best_ratio_to_standard", row.ratio.best},
                    {"rel_l2", row.rel_l2},
                    {"wrong", row.wrong()},
                    {"slower", row.slower()}});
  }
  const nlohmann::ordered_json json{{"machine", machine_json(result.machine)},
                                    {"seed", result.seed},
                                    {"repeats", result.repeats},
                                    {"measured", result.rows.size()},
                                    {"wrong", result.wrong},
                                    {"slower", result.slower},
                                    {"median_ratio", result.median_ratio},
                                    {"least_ratio", result.least_ratio},
                                    {"results", rows}};
  fmt::print("{}\n", json.dump(2));
}

void print_rows(const SweepResult& result, bool (SweepRow::*chosen)() const, const char* title) {
  bool first = true;
  for (const SweepRow& row : result.rows) {
    if (!(row.*chosen)()) continue;
    if (first)
      fmt::print(
          "\n{}\n{:>6}  {:<8}  {:>6}  {:>5}  {:>5}  {:<4}  {:<4}  {:>7}  {:<16}  {:>9}  {:>8}  {:>8}\n",
          title, "group", "way", "rows", "in", "out", "bias", "gelu", "threads", "kernel", "ms", "ratio",
          "rel-L2");
    first = false;
    fmt::print(
        "{:>6}  {:<8}  {:>6}  {:>5}  {:>5}  {:<4}  {:<4}  {:>7}  {:<16}  {:>9.4f}  {:>7.2f}x  {:>8.1e}\n",
        row.sizes.group, name_of(row.direction), row.sizes.rows, row.sizes.channels_in,
        row.sizes.channels_out, row.sizes.bias ? "yes" : "no", has_gelu(row) ? "yes" : "no", row.threads,
        row.kernel, row.ms, row.ratio.median, row.rel_l2);
  }
}

void print_text(const SweepResult& result) {
  print_machine(result.machine);
  fmt::print("sweep    {} random layers (seed {}), forward and backward, {} repeats, f32\n",
             result.rows.size() / 2, result.seed, result.repeats);
  fmt::print(
      "timed    against an ordinary linear layer of equal width; weights packed before on both sides\n");
  print_rows(result, &SweepRow::wrong, "wrong results");
  print_rows(result, &SweepRow::slower, "slower by more than 5 % in every repeat");
  fmt::print(
      "\nwrong    {} of {}\nslower   {} of {}\nratio    {:.2f} median, {:.2f} least; above 1 is faster\n",
      result.wrong, result.rows.size(), result.slower, result.rows.size(), result.median_ratio,
      result.least_ratio);
}

}  // namespace

void add_sweep_options(CLI::App& command, SweepCommand& options) {
  add_number(
      command, "--sweep", options.cases, {0, 1'000'000},
      "instead: this many random layers, checked against f64 and timed against an ordinary one; 0: off");
  add_number(command, "--seed", options.seed, {0, 1LL << 62}, "of the sweep");
  add_number(command, "--repeats", options.repeats, {1, 100}, "of each measurement of the sweep");
}

int run_sweep(const SweepCommand& command, const std::vector<std::string>& groups, bool json) {
  SweepOptions options;
  options.cases = command.cases;
  options.seed = static_cast<std::uint64_t>(command.seed);
  options.repeats = command.repeats;
  options.groups = groups;
  ProgressLine line(stderr, !json);
  const SweepResult result = sweep(options, [&](std::int64_t done, const SweepRow& last) {
    line.update("sweep", static_cast<double>(done) / static_cast<double>(options.cases * options.repeats),
                fmt::format("{} of {}  {:.2f}x", done, options.cases * options.repeats, last.ratio.median));
  });
  line.clear();
  if (json) {
    print_json(result);
  } else {
    print_text(result);
  }
  require(result.wrong == 0, "sweep: {} of {} results are wrong", result.wrong, result.rows.size());
  return success;
}

}  // namespace gyre::cli
