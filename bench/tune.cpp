#include "bench/tune.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "bench/eq_trial.h"
#include "core/error.h"

namespace gyre {
namespace {

using kernels::EqBackend;
using kernels::EqDirection;
using Clock = std::chrono::steady_clock;

constexpr double most_work = 0x1p33;  // multiply-adds of the dense layer
constexpr double slow_call = 20;      // milliseconds from which three rounds are enough

double dense_work(const EqSizes& sizes) {
  const double order = Group::get(sizes.group).order();
  return static_cast<double>(sizes.rows) * static_cast<double>(sizes.channels_in) * order *
         static_cast<double>(sizes.channels_out) * order;
}

/// Powers of four up to `most`.
std::vector<std::int64_t> axis(std::int64_t most) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = 1; value <= most; value *= 4) values.push_back(value);
  return values;
}

/// The grid, small layers first.
std::vector<EqSizes> grid_of(const TuneOptions& options) {
  std::vector<EqSizes> grid;
  for (const std::string& group : options.groups)
    for (const std::int64_t rows : axis(options.most_rows))
      for (const std::int64_t in : axis(options.most_channels))
        for (const std::int64_t out : axis(options.most_channels)) {
          const EqSizes sizes{group, rows, in, out};
          if (dense_work(sizes) <= most_work) grid.push_back(sizes);
        }
  std::stable_sort(grid.begin(), grid.end(),
                   [](const EqSizes& a, const EqSizes& b) { return dense_work(a) < dense_work(b); });
  return grid;
}

TuneCell measure(const TuneOptions& options, EqTrial& trial, const EqSizes& sizes, EqDirection direction) {
  std::vector<std::function<void()>> contestants;
  for (const EqBackend backend : {EqBackend::fused, EqBackend::packed, EqBackend::naive})
    contestants.emplace_back([&trial, direction, backend] { trial.run(direction, backend); });
  contestants.back()();
  const auto start = Clock::now();
  contestants.back()();
  const int rounds = milliseconds_since(start) > slow_call ? std::min(3, options.rounds) : options.rounds;
  std::array<Runs, 3> runs;
  time_calls(contestants, rounds, options.seconds, runs);
  return {sizes.group,
          direction,
          sizes.rows,
          sizes.channels_in,
          sizes.channels_out,
          summarise(runs[0]).median,
          summarise(runs[1]).median,
          summarise(runs[2]).median};
}

}  // namespace

std::int64_t tune_grid_size(const TuneOptions& options) {
  return static_cast<std::int64_t>(grid_of(options).size());
}

TuneTable tune(const TuneOptions& options, const TuneKey& key,
               const std::function<void(std::int64_t, const TuneCell&)>& progress) {
  require<ValueError>(options.budget > 0 && options.rounds >= 1 && options.seconds > 0,
                      "tune: budget, rounds and seconds must be positive");
  const auto start = Clock::now();
  TuneTable table{key, {}};
  std::int64_t done = 0;
  for (const EqSizes& sizes : grid_of(options)) {
    if (milliseconds_since(start) > 1e3 * options.budget) break;
    EqTrial trial(sizes, 0);
    for (const EqDirection direction : {EqDirection::forward, EqDirection::backward})
      table.cells.push_back(measure(options, trial, sizes, direction));
    if (progress) progress(++done, table.cells.back());
  }
  return table;
}

}  // namespace gyre
