#include "bench/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/parallel.h"
#include "core/random.h"

namespace gyre {
namespace {

using kernels::EqDirection;

constexpr double error_bound = 5e-6;
constexpr double slower_bound = 0.95;
constexpr double most_work = 0x1p33;  // multiply-adds of the dense layer

std::int64_t below(RandomStream& stream, std::int64_t count) {
  return static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(count)));
}

/// 1 to `most`, evenly on a logarithmic scale.
std::int64_t draw_count(RandomStream& stream, std::int64_t most) {
  const double u = static_cast<double>(below(stream, 1 << 30)) / (1 << 30);
  return std::min(most, static_cast<std::int64_t>(std::exp(u * std::log(static_cast<double>(most) + 1))));
}

SweepRow draw_case(const SweepOptions& options, RandomStream& stream, int threads) {
  SweepRow row;
  EqSizes& sizes = row.sizes;
  sizes.group =
      options
          .groups[static_cast<std::size_t>(below(stream, static_cast<std::int64_t>(options.groups.size())))];
  const double order = Group::get(sizes.group).order();
  do {
    sizes.rows = draw_count(stream, options.most_rows);
    sizes.channels_in = draw_count(stream, options.most_channels);
    sizes.channels_out = draw_count(stream, options.most_channels);
  } while (static_cast<double>(sizes.rows) * static_cast<double>(sizes.channels_in) * order *
               static_cast<double>(sizes.channels_out) * order >
           most_work);
  sizes.bias = below(stream, 2) == 1;
  sizes.activation = below(stream, 2) == 1 ? kernels::Activation::gelu : kernels::Activation::none;
  row.threads = 1 + static_cast<int>(below(stream, threads));
  return row;
}

void measure(const SweepOptions& options, EqTrial& trial, SweepRow& row) {
  trial.run(row.direction, options.backend);
  row.kernel = trial.kernel(row.direction, options.backend);
  row.rel_l2 = trial.error(row.direction);
  const std::array<std::function<void()>, 2> contestants{[&] { trial.run(row.direction, std::nullopt); },
                                                         [&] { trial.run(row.direction, options.backend); }};
  std::array<Runs, 2> runs;
  for (int repeat = 0; repeat < options.repeats; ++repeat)
    time_calls(contestants, options.rounds, options.seconds, runs);
  row.ms_standard = summarise(runs[0]).median;
  row.ms = summarise(runs[1]).median;
  row.ratio = ratio_of(runs[0], runs[1]);
}

/// Puts the thread count back.
class ThreadsScope {
 public:
  ThreadsScope() : count_(num_threads()) {}
  ~ThreadsScope() { set_num_threads(count_); }
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;
  int count() const { return count_; }

 private:
  int count_;
};

}  // namespace

bool SweepRow::wrong() const { return !(rel_l2 <= error_bound); }
bool SweepRow::slower() const { return ratio.best < slower_bound; }

SweepResult sweep(const SweepOptions& options,
                  const std::function<void(std::int64_t, const SweepRow&)>& progress) {
  require<ValueError>(
      options.cases >= 1 && options.repeats >= 1 && options.rounds >= 1 && options.seconds > 0,
      "sweep: cases, repeats, rounds and seconds must be positive");
  require<ValueError>(!options.groups.empty() && options.most_rows >= 1 && options.most_channels >= 1,
                      "sweep: groups, rows and channels must not be empty");
  SweepResult result{this_machine(), options.seed, options.repeats, {}};
  const ThreadsScope threads;
  std::vector<double> ratios;
  for (std::int64_t i = 0; i < options.cases; ++i) {
    RandomStream stream(options.seed, Purpose::test, static_cast<std::uint64_t>(i));
    SweepRow row = draw_case(options, stream, threads.count());
    set_num_threads(row.threads);
    EqTrial trial(row.sizes, options.seed + static_cast<std::uint64_t>(i));
    for (const EqDirection direction : {EqDirection::forward, EqDirection::backward}) {
      row.direction = direction;
      measure(options, trial, row);
      result.wrong += row.wrong();
      result.slower += row.slower();
      ratios.push_back(row.ratio.median);
      result.rows.push_back(row);
    }
    if (progress) progress(i + 1, row);
  }
  result.least_ratio = *std::min_element(ratios.begin(), ratios.end());
  result.median_ratio = median(std::move(ratios));
  return result;
}

}  // namespace gyre
