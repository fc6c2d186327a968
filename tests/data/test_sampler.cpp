#include "data/sampler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "tests/data/support.h"

namespace gyre {
namespace {

using test::error_of;
using ::testing::HasSubstr;
using Indices = std::vector<std::int64_t>;

Indices iota(std::int64_t count) {
  Indices all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Indices sorted(Indices values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST(Sampler, EveryRankCountCoversEachIndexOnce) {
  for (const std::int64_t size : {1, 2, 10, 12, 31, 97}) {
    for (const std::int64_t batch : {3, 4, 8, 200}) {
      for (const int world : {1, 2, 3}) {
        for (const bool shuffle : {false, true}) {
          Indices seen;
          for (int rank = 0; rank < world; ++rank) {
            const Sampler sampler(size, batch, 5, rank, world, shuffle);
            ASSERT_EQ(sampler.batches(), (size + batch - 1) / batch);
            for (std::int64_t step = 0; step < sampler.batches(); ++step)
              for (const std::int64_t i : sampler.batch(2, step)) seen.push_back(i);
          }
          ASSERT_EQ(sorted(seen), iota(size)) << size << " " << batch << " " << world;
        }
      }
    }
  }
}

TEST(Sampler, RanksTogetherSeeTheBatchOfOne) {
  const Sampler one(50, 8, 3);
  for (std::int64_t step = 0; step < one.batches(); ++step) {
    Indices joined;
    for (int rank = 0; rank < 3; ++rank)
      for (const std::int64_t i : Sampler(50, 8, 3, rank, 3).batch(4, step)) joined.push_back(i);
    EXPECT_EQ(joined, one.batch(4, step));
    EXPECT_EQ(static_cast<std::int64_t>(joined.size()), one.global_batch(step));
  }
  EXPECT_EQ(one.global_batch(6), 2);
  EXPECT_TRUE(Sampler(50, 8, 3, 0, 3).batch(0, 6).empty());  // 2 samples for 3 ranks
}

TEST(Sampler, OrderDependsOnSeedAndEpochAlone) {
  const Sampler sampler(1000, 10, 7);
  EXPECT_EQ(sampler.order(3), Sampler(1000, 25, 7, 1, 2).order(3));
  EXPECT_NE(sampler.order(3), sampler.order(4));
  EXPECT_NE(sampler.order(3), Sampler(1000, 10, 8).order(3));
  EXPECT_NE(sampler.order(0), iota(1000));
  EXPECT_EQ(Sampler(1000, 10, 7, 0, 1, false).order(3), iota(1000));
}

TEST(Sampler, DropLastDropsOnlyTheShortBatch) {
  const Sampler sampler(23, 5, 1, 0, 1, true, true);
  EXPECT_EQ(sampler.batches(), 4);
  for (std::int64_t step = 0; step < 4; ++step) EXPECT_EQ(sampler.batch(0, step).size(), 5U);
  EXPECT_THAT(error_of<ValueError>([&] { sampler.range(4); }), HasSubstr("step 4 of 4"));
}

TEST(Sampler, RefusesEpochsWithoutSteps) {
  EXPECT_EQ(error_of<ValueError>([] { Sampler(7, 8, 0, 0, 1, true, true); }),
            "7 samples, batch 8, drop_last: 0 steps");
  EXPECT_EQ(error_of<ValueError>([] { Sampler(0, 8, 0); }), "0 samples, batch 8: 0 steps");
  EXPECT_EQ(error_of<ValueError>([] { Sampler(7, 0, 0); }), "batch 0 is too small for 1 rank");
  EXPECT_EQ(error_of<ValueError>([] { Sampler(7, 2, 0, 0, 3); }), "batch 2 is too small for 3 ranks");
  EXPECT_EQ(error_of<ValueError>([] { Sampler(7, 4, 0, 3, 3); }), "rank 3 of 3");
}

}  // namespace
}  // namespace gyre
