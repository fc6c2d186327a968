#include "bench/bench_op.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/parallel.h"

namespace gyre {
namespace {

TEST(BenchOp, MeasuresEachLayerBothWays) {
  set_num_threads(1);
  BenchOpOptions options;
  options.channels = {4, 17};
  options.rows = 30;
  options.rounds = 3;
  options.seconds = 1e-3;
  for (const char* group : {"c2", "c4", "d4"}) {
    options.group = group;
    const BenchOpResult result = bench_op(options);
    EXPECT_GT(result.peak_gflops, 0);
    ASSERT_EQ(result.results.size(), 12u);
    for (const BenchOpRow& row : result.results) {
      EXPECT_GT(row.ms_median, 0);
      EXPECT_LE(row.ms_min, row.ms_median);
      EXPECT_LE(row.ms_median, row.ms_max);
      EXPECT_GT(row.gflops, 0);
      EXPECT_GT(row.ratio_to_standard, 0);
      EXPECT_GT(row.rel_l2, 0) << row.impl;  // f32 is never exact here
      EXPECT_LT(row.rel_l2, 2e-6) << group << " " << row.impl << " " << row.direction << " " << row.channels;
      if (row.impl == "standard") {
        EXPECT_EQ(row.ratio_to_standard, 1);
      }
    }
    EXPECT_EQ(result.results[0].impl, "standard");
    EXPECT_EQ(result.results[1].kernel, "naive_onednn");
    EXPECT_EQ(result.results[5].direction, "backward");
    EXPECT_TRUE(result.results[5].kernel.starts_with("flash"));
  }
}

TEST(BenchOp, RefusesWhatCannotBeMeasured) {
  BenchOpOptions options;
  options.channels = {0};
  EXPECT_THROW(bench_op(options), ValueError);
  options.channels = {4};
  options.rows = 0;
  EXPECT_THROW(bench_op(options), ValueError);
  options.rows = 4;
  options.products = 7;
  EXPECT_THROW(bench_op(options), ValueError);
}

}  // namespace
}  // namespace gyre
