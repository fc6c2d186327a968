#include "train/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/support.h"
#include "train/step.h"

namespace gyre {
namespace {

TEST(UpdatesIn, FillsTheBudgetWithUpdatesAndEvaluations) {
  const Pace pace{.update = 0.01, .evaluation = 2, .test = 4, .spent = 5};
  // Of 100 s, 93 are used; 11 go to the measurement, the last evaluation and the test; 100 updates and an
  // evaluation take 3 s.
  EXPECT_EQ(updates_in(100, pace, 100, 1), 2733);
  // Half as many evaluations: 200 updates and one take 4 s.
  EXPECT_EQ(updates_in(100, pace, 100, 2), 4100);
}

TEST(UpdatesIn, RefusesABudgetWithoutAnUpdate) {
  const Pace pace{.update = 0.5, .evaluation = 1, .test = 2, .spent = 3};
  EXPECT_THAT(test::error_of<ConfigError>([&] { updates_in(5, pace, 10, 1); }),
              testing::AllOf(testing::HasSubstr("train.time_budget"), testing::HasSubstr("too short")));
}

TEST(MeasurePace, TimesEveryPart) {
  const test::TempFolder folder;
  test::write_tiny_data(folder);
  Config config = test::tiny_config(folder.path());
  const DataSplits splits = open_data(config.data, 0);
  config.model = fit_model(config.model, *splits.train, splits.preprocessing);
  const Pace pace = measure_pace(config, splits);
  EXPECT_GT(pace.update, 0);
  EXPECT_GT(pace.evaluation, 0);
  EXPECT_GT(pace.test, 0);
  EXPECT_GT(pace.spent, 20 * pace.update);
}

}  // namespace
}  // namespace gyre
