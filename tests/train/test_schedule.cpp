#include "train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace gyre {
namespace {

double closed_form(double t, double final, double peak) {
  return peak * (final + (1 - final) * (1 + std::cos(std::numbers::pi * t)) / 2);
}

TEST(Schedule, WarmupRisesLinearlyFromStartToPeak) {
  const ScheduleConfig config{.shape = "cosine", .warmup = 0.1, .warmup_start = 0.25, .final = 0.01};
  ASSERT_EQ(warmup_updates(1000, config), 100);
  for (int u = 0; u <= 100; ++u) {
    EXPECT_NEAR(learning_rate(u, 1000, config, 4e-3), 4e-3 * (0.25 + 0.75 * u / 100.0), 1e-17) << u;
  }
}

TEST(Schedule, CosineFallsFromPeakToFinalAtTheLastUpdate) {
  const ScheduleConfig config{.shape = "cosine", .warmup = 0.1, .warmup_start = 0, .final = 0.02};
  for (int u = 100; u < 1000; ++u) {
    EXPECT_NEAR(learning_rate(u, 1000, config, 2e-3), closed_form((u - 100) / 899.0, 0.02, 2e-3), 1e-17) << u;
  }
  EXPECT_DOUBLE_EQ(learning_rate(100, 1000, config, 2e-3), 2e-3);
  EXPECT_DOUBLE_EQ(learning_rate(999, 1000, config, 2e-3), 2e-3 * 0.02);
  EXPECT_DOUBLE_EQ(learning_rate(5000, 1000, config, 2e-3), 2e-3 * 0.02);
}

TEST(Schedule, ConstantStaysAtPeakAfterWarmup) {
  const ScheduleConfig config{.shape = "constant", .warmup = 0.5, .warmup_start = 0.5, .final = 0.01};
  EXPECT_DOUBLE_EQ(learning_rate(0, 10, config, 1), 0.5);
  for (int u = 5; u < 12; ++u) EXPECT_DOUBLE_EQ(learning_rate(u, 10, config, 1), 1) << u;
}

TEST(Schedule, WithoutWarmupStartsAtPeak) {
  const ScheduleConfig config{.shape = "cosine", .warmup = 0, .warmup_start = 1e-3, .final = 0};
  EXPECT_DOUBLE_EQ(learning_rate(0, 100, config, 3), 3);
  EXPECT_NEAR(learning_rate(99, 100, config, 3), 0, 1e-15);
}

TEST(Schedule, ShortRunsHaveFiniteRates) {
  for (const double warmup : {0.0, 0.3, 0.5, 1.0}) {
    const ScheduleConfig config{.shape = "cosine", .warmup = warmup, .warmup_start = 1e-3, .final = 1e-2};
    for (int total = 1; total < 6; ++total) {
      for (int u = 0; u < total; ++u) {
        const double rate = learning_rate(u, total, config, 1);
        EXPECT_TRUE(rate > 0 && rate <= 1) << warmup << ' ' << u << '/' << total << ": " << rate;
      }
    }
  }
}

TEST(Schedule, RefusesImpossibleCounts) {
  EXPECT_THROW(learning_rate(-1, 10, {}, 1), ValueError);
  EXPECT_THROW(learning_rate(0, 0, {}, 1), ValueError);
}

}  // namespace
}  // namespace gyre
