#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/tune_table.h"

namespace gyre {

/// `gyre tune`: times every implementation of EQ-Linear on a grid of powers of four.
struct TuneOptions {
  std::vector<std::string> groups{"c4"};
  double budget = 120;    ///< seconds; small layers come first, and what is left out follows the fixed rule
  int rounds = 5;         ///< of each implementation, alternating
  double seconds = 5e-4;  ///< per round and implementation, at least one call
  std::int64_t most_rows = 4096, most_channels = 1024;
};

/// Layers that the grid has.
std::int64_t tune_grid_size(const TuneOptions& options);

/// `progress(done, last)` after each layer; may be empty. Products of more than 2^33 multiply-adds in their
/// dense form are left out. Throws ValueError for options that do not fit.
TuneTable tune(const TuneOptions& options, const TuneKey& key,
               const std::function<void(std::int64_t done, const TuneCell& last)>& progress = {});

}  // namespace gyre
