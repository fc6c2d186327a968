#include "bench/sweep.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "core/parallel.h"

namespace gyre {
namespace {

SweepOptions quick() {
  SweepOptions options;
  options.cases = 6;
  options.groups = {"c1", "c2", "c4", "d4"};
  options.repeats = 2;
  options.rounds = 2;
  options.seconds = 1e-5;
  options.most_rows = 60;
  options.most_channels = 40;
  return options;
}

TEST(Sweep, DrawsTheSameCasesForTheSameSeed) {
  set_num_threads(2);
  std::int64_t steps = 0;
  const SweepResult one =
      sweep(quick(), [&](std::int64_t done, const SweepRow&) { EXPECT_EQ(done, ++steps); });
  EXPECT_EQ(steps, 12);  // two repeats
  EXPECT_EQ(num_threads(), 2);
  const SweepResult two = sweep(quick());
  SweepOptions other = quick();
  other.seed = 1;
  const SweepResult three = sweep(other);
  ASSERT_EQ(one.rows.size(), 12u);
  bool differs = false;
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    const SweepRow &a = one.rows[i], &b = two.rows[i];
    EXPECT_EQ(a.sizes.rows, b.sizes.rows);
    EXPECT_EQ(a.sizes.channels_in, b.sizes.channels_in);
    EXPECT_EQ(a.kernel, b.kernel);
    EXPECT_EQ(a.rel_l2, b.rel_l2);
    EXPECT_FALSE(a.wrong()) << a.rel_l2;
    EXPECT_GT(a.rel_l2, 0);
    EXPECT_GT(a.ratio.median, 0);
    EXPECT_GT(a.ratio.best, 0);
    EXPECT_LE(a.threads, 2);
    differs |= a.sizes.rows != three.rows[i].sizes.rows;
  }
  EXPECT_TRUE(differs);
  EXPECT_EQ(one.wrong, 0);
}

TEST(Sweep, EveryBackendIsRight) {
  for (const auto backend :
       {kernels::EqBackend::fused, kernels::EqBackend::packed, kernels::EqBackend::naive}) {
    SweepOptions options = quick();
    options.backend = backend;
    EXPECT_EQ(sweep(options).wrong, 0) << name_of(backend);
  }
}

TEST(Sweep, KnowsWhatIsWrongAndSlow) {
  SweepRow row;
  row.rel_l2 = 1e-7;
  row.ratio.best = 0.96;
  EXPECT_FALSE(row.wrong());
  EXPECT_FALSE(row.slower());
  row.rel_l2 = std::numeric_limits<double>::quiet_NaN();
  row.ratio.best = 0.94;
  EXPECT_TRUE(row.wrong());
  EXPECT_TRUE(row.slower());
  row.rel_l2 = 1e-3;
  EXPECT_TRUE(row.wrong());
}

TEST(Sweep, RefusesWhatCannotBeMeasured) {
  SweepOptions options = quick();
  options.cases = 0;
  EXPECT_THROW(sweep(options), ValueError);
  options = quick();
  options.groups.clear();
  EXPECT_THROW(sweep(options), ValueError);
}

}  // namespace
}  // namespace gyre
