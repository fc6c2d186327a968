#include "bench/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gyre {
namespace {

TEST(Statistics, MedianIsTheMiddleOfSortedValues) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({8, 1, 2, 4}), 3);
}

TEST(Statistics, SpreadIsTheDistanceOfTheQuartilesOverTheMedian) {
  EXPECT_EQ(relative_spread({3}), 0);
  EXPECT_EQ(relative_spread({5, 5, 5, 100, 5}), 0);
  // Quartiles of 1..5 are 2 and 4.
  EXPECT_DOUBLE_EQ(relative_spread({5, 3, 1, 2, 4}), 2.0 / 3);
  // Between the values: quartiles of 1, 2, 3, 4 are 1.75 and 3.25.
  EXPECT_DOUBLE_EQ(relative_spread({4, 3, 2, 1}), 1.5 / 2.5);
}

TEST(Statistics, TimingTakesAllRoundsOfAllRuns) {
  const Timing timing = summarise({{4, 2, 3}, {10, 1, 5}});
  EXPECT_DOUBLE_EQ(timing.median, 3.5);
  EXPECT_EQ(timing.min, 1);
  EXPECT_EQ(timing.max, 10);
  EXPECT_DOUBLE_EQ(timing.spread, (4.75 - 2.25) / 3.5);
}

TEST(Statistics, RatioIsTakenWithinRoundsAndTheBestFromOneRun) {
  const Runs own{{1, 2, 1}, {2, 2, 2}}, other{{3, 4, 2}, {8, 10, 2}};
  // Ratios 3 2 2 | 4 5 1.
  const Ratio ratio = ratio_of(other, own);
  EXPECT_EQ(ratio.median, 2.5);
  EXPECT_EQ(ratio.best, 4);
  // A machine twice as slow in one round changes nothing.
  const Ratio slowed = ratio_of({{6, 4, 2}, {8, 10, 2}}, {{2, 2, 1}, {2, 2, 2}});
  EXPECT_EQ(slowed.median, 2.5);
  EXPECT_EQ(ratio_of(own, own).median, 1);
  EXPECT_EQ(ratio_of(own, own).best, 1);
}

TEST(Statistics, EachContestantGoesFirstInTurn) {
  std::vector<int> order;
  std::vector<std::function<double()>> measure;
  for (int i = 0; i < 3; ++i)
    measure.push_back([&order, i] {
      order.push_back(i);
      return static_cast<double>(order.size());
    });
  std::vector<Runs> runs(3);
  run_alternating(3, measure, runs);
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 1, 2, 0, 2, 0, 1));
  EXPECT_THAT(runs[0], testing::ElementsAre(std::vector<double>{1, 6, 8}));
  EXPECT_THAT(runs[2], testing::ElementsAre(std::vector<double>{3, 5, 7}));
  run_alternating(1, measure, runs);
  ASSERT_EQ(runs[1].size(), 2u);
  EXPECT_THAT(runs[1][1], testing::ElementsAre(11));
}

}  // namespace
}  // namespace gyre
