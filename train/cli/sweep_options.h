#pragma once

#include "bench/sweep.h"
#include "train/cli/command.h"

namespace gyre::cli {

/// What `bench op --sweep` adds to `bench op`.
struct SweepCommand {
  std::int64_t cases = 0;  ///< 0: no sweep
  std::int64_t seed = 0;
  int repeats = 3;
};

void add_sweep_options(CLI::App& command, SweepCommand& options);
/// Runs and prints the sweep; fails where a result is wrong.
int run_sweep(const SweepCommand& options, const std::vector<std::string>& groups, bool json);

}  // namespace gyre::cli
