#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/machine.h"
#include "bench/statistics.h"
#include "train/cli/command.h"

namespace gyre::cli {

// What the commands below `bench` have in common.

/// Repetitions of every bench command.
struct BenchRepeats {
  int& runs;
  int& rounds;
  double& seconds;
};
void add_repeat_options(CLI::App& command, const BenchRepeats& repeats);

/// The words of "a,b,c", each read by `read`; a ValueError becomes a UsageError that names the option.
template <std::invocable<std::string> Read>
auto parse_list(std::string_view option, std::string_view text, Read&& read) {
  std::vector<std::invoke_result_t<Read, std::string>> values;
  try {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      values.push_back(read(std::string(text.substr(at, end - at))));
      at = end + 1;
    }
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("{}: {}", option, error.what()));
  }
  return values;
}
/// EQ-Linear backends by name.
std::vector<std::string> parse_backends(std::string_view option, std::string_view text);

nlohmann::ordered_json machine_json(const Machine& machine);
/// Two lines of text.
void print_machine(const Machine& machine);

/// "12.3 to 14.5" with `digits` behind the point.
std::string range_text(const Timing& ms, int digits);
/// "2.81x", and where there were several runs "2.81x (2.95x)" with the best one.
std::string ratio_text(const Ratio& ratio, int runs);
/// What the columns mean, for the last lines of a table.
void print_ratio_note(int runs);

}  // namespace gyre::cli
