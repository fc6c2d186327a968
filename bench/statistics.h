#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <vector>

namespace gyre {

/// Middle value, or the mean of the two middle ones; `values` is not empty.
double median(std::vector<double> values);
/// Distance between the quartiles (interpolated) over the median; 0 for one value.
double relative_spread(std::vector<double> values);

double milliseconds_since(std::chrono::steady_clock::time_point start);

/// Milliseconds of one contestant: a list of rounds per run.
using Runs = std::vector<std::vector<double>>;

struct Timing {
  double median = 0, min = 0, max = 0;  ///< milliseconds, over all rounds of all runs
  double spread = 0;                    ///< relative_spread of them
};
Timing summarise(const Runs& runs);

/// Time of another over own time, above 1 is faster. Taken within a round, so that a machine that slows down
/// does so for both.
struct Ratio {
  double median = 0;  ///< over all rounds of all runs
  double best = 0;    ///< highest of the medians of single runs
};
/// Both hold the same number of runs and rounds.
Ratio ratio_of(const Runs& other, const Runs& own);

/// One more run of each contestant: `rounds` measurements of all of them, each going first in turn.
/// `measure[i]` returns milliseconds, which are added to `runs[i]`.
void run_alternating(int rounds, std::span<const std::function<double()>> measure, std::span<Runs> runs);

}  // namespace gyre
