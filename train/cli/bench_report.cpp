#include "train/cli/bench_report.h"

#include "kernels/eq_linear.h"

namespace gyre::cli {

void add_repeat_options(CLI::App& command, const BenchRepeats& repeats) {
  add_number(command, "--runs", repeats.runs, {1, 100},
             "runs, one after the other; ratios are given over all of them and for the best one");
  add_number(command, "--rounds", repeats.rounds, {1, 1000}, "measurements of each in a run, alternating");
  add_number(command, "--seconds", repeats.seconds, {.low = 0, .high = 3600, .open_low = true},
             "length of one measurement");
}

std::vector<std::string> parse_backends(std::string_view option, std::string_view text) {
  return parse_list(option, text, [](const std::string& word) {
    kernels::parse_eq_backend(word);
    return word;
  });
}

nlohmann::ordered_json machine_json(const Machine& machine) {
  return {{"cpu", machine.cpu},
          {"threads", machine.threads},
          {"pinned", machine.pinned},
          {"simd", machine.simd},
          {"peak_gflops", machine.peak_gflops},
          {"bandwidth_gbs", machine.bandwidth_gbs},
          {"dense_library", machine.dense_library},
          {"tune_table", machine.tune_table.empty() ? nlohmann::ordered_json(nullptr)
                                                    : nlohmann::ordered_json(machine.tune_table)},
          {"highway", machine.highway},
          {"compiler", machine.compiler}};
}

void print_machine(const Machine& machine) {
  fmt::print("machine  {}, {} {} thread{}, {}, {:.0f} GFLOP/s of multiply-adds, {:.0f} GB/s\n", machine.cpu,
             machine.threads, machine.pinned ? "pinned" : "free", machine.threads == 1 ? "" : "s",
             machine.simd, machine.peak_gflops, machine.bandwidth_gbs);
  fmt::print("library  {}, Highway {}, {}\n", machine.dense_library, machine.highway, machine.compiler);
  if (!machine.tune_table.empty()) fmt::print("kernels  by tune table {}\n", machine.tune_table);
}

std::string range_text(const Timing& ms, int digits) {
  return fmt::format("{:.{}f} to {:.{}f}", ms.min, digits, ms.max, digits);
}

std::string ratio_text(const Ratio& ratio, int runs) {
  if (runs == 1) return fmt::format("{:.2f}x", ratio.median);
  return fmt::format("{:.2f}x ({:.2f}x)", ratio.median, ratio.best);
}

void print_ratio_note(int runs) {
  fmt::print("vs: time of the other / own time, above 1 is faster; median over rounds{}\n",
             runs == 1 ? "" : fmt::format(" of {} runs (in brackets: best run)", runs));
  fmt::print(
      "ms: median; range: fastest and slowest round; spread: distance of the quartiles over the median\n");
}

}  // namespace gyre::cli
