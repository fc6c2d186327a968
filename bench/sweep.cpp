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
constexpr std::int64_t usual_channels = 8;  // at least, but for one case in
constexpr std::int64_t narrow_share = 5;
constexpr double most_work = 0x1p33;  // multiply-adds of the dense layer

std::int64_t below(RandomStream& stream, std::int64_t count) {
  return static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(count)));
}

/// `least` to `most`, evenly on a logarithmic scale.
std::int64_t draw_count(RandomStream& stream, std::int64_t least, std::int64_t most) {
  const double u = static_cast<double>(below(stream, 1 << 30)) / (1 << 30);
  const double low = static_cast<double>(least), high = static_cast<double>(std::max(least, most)) + 1;
  return std::min(most, static_cast<std::int64_t>(low * std::pow(high / low, u)));
}

SweepRow draw_case(const SweepOptions& options, RandomStream& stream, int threads) {
  SweepRow row;
  EqSizes& sizes = row.sizes;
  sizes.group =
      options
          .groups[static_cast<std::size_t>(below(stream, static_cast<std::int64_t>(options.groups.size())))];
  const double order = Group::get(sizes.group).order();
  const std::int64_t least = below(stream, narrow_share) == 0 ? 1 : usual_channels;
  do {
    sizes.rows = draw_count(stream, 1, options.most_rows);
    sizes.channels_in = draw_count(stream, least, options.most_channels);
    sizes.channels_out = draw_count(stream, least, options.most_channels);
  } while (static_cast<double>(sizes.rows) * static_cast<double>(sizes.channels_in) * order *
               static_cast<double>(sizes.channels_out) * order >
           most_work);
  sizes.bias = below(stream, 2) == 1;
  sizes.activation = below(stream, 2) == 1 ? kernels::Activation::gelu : kernels::Activation::none;
  row.threads = 1 + static_cast<int>(below(stream, threads));
  return row;
}

/// Measures of one case in one direction, over all repeats.
struct Measures {
  SweepRow row;
  std::array<Runs, 2> runs;  // standard, own
};

void check(const SweepOptions& options, EqTrial& trial, SweepRow& row) {
  trial.run(row.direction, options.backend);
  row.kernel = trial.kernel(row.direction, options.backend);
  row.rel_l2 = trial.error(row.direction);
}

void repeat(const SweepOptions& options, EqTrial& trial, Measures& measures) {
  const EqDirection direction = measures.row.direction;
  const std::array<std::function<void()>, 2> contestants{[&] { trial.run(direction, std::nullopt); },
                                                         [&] { trial.run(direction, options.backend); }};
  time_calls(contestants, options.rounds, options.seconds, measures.runs);
}

SweepRow finished(const Measures& measures) {
  SweepRow row = measures.row;
  row.ms_standard = summarise(measures.runs[0]).median;
  row.ms = summarise(measures.runs[1]).median;
  row.ratio = ratio_of(measures.runs[0], measures.runs[1]);
  return row;
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
  SweepResult result;
  result.machine = this_machine();
  result.seed = options.seed;
  result.repeats = options.repeats;
  const ThreadsScope threads;
  std::vector<std::array<Measures, 2>> all(static_cast<std::size_t>(options.cases));
  std::int64_t done = 0;
  // Whole passes, so that a disturbance does not meet every repeat of a case.
  for (int pass = 0; pass < options.repeats; ++pass) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (pass == 0) {
        RandomStream stream(options.seed, Purpose::test, i);
        all[i][0].row = all[i][1].row = draw_case(options, stream, threads.count());
        all[i][1].row.direction = EqDirection::backward;
      }
      set_num_threads(all[i][0].row.threads);
      EqTrial trial(all[i][0].row.sizes, options.seed + i);
      for (Measures& measures : all[i]) {
        if (pass == 0) check(options, trial, measures.row);
        repeat(options, trial, measures);
      }
      if (progress) progress(++done, finished(all[i][1]));
    }
  }
  std::vector<double> ratios;
  for (const auto& both : all) {
    for (const Measures& measures : both) {
      result.rows.push_back(finished(measures));
      result.wrong += result.rows.back().wrong();
      result.slower += result.rows.back().slower();
      ratios.push_back(result.rows.back().ratio.median);
    }
  }
  result.least_ratio = *std::min_element(ratios.begin(), ratios.end());
  result.median_ratio = median(std::move(ratios));
  return result;
}

}  // namespace gyre
