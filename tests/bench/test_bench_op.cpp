#include "bench/bench_op.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/random.h"
#include "tests/train/support.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;

BenchOpOptions quick_options() {
  set_num_threads(1);
  BenchOpOptions options;
  options.groups = {"c2", "c4", "d4"};
  options.channels = {4, 17};
  options.rows = 300;
  options.rounds = 3;
  options.seconds = 1e-4;
  return options;
}

TEST(BenchOp, MeasuresEachLayerEveryWay) {
  BenchOpOptions options = quick_options();
  using enum OpDirection;
  options.directions = {forward, backward, dx, dw};
  const BenchOpResult result = bench_op(options);
  EXPECT_GT(result.machine.peak_gflops, 0);
  ASSERT_EQ(result.results.size(), 3u * 2 * 4 * 3);
  for (const BenchOpRow& row : result.results) {
    SCOPED_TRACE(fmt::format("{} {} {} {}", row.group, row.impl, name_of(row.direction), row.channels));
    EXPECT_GT(row.ms.min, 0);
    EXPECT_LE(row.ms.min, row.ms.median);
    EXPECT_LE(row.ms.median, row.ms.max);
    EXPECT_GE(row.ms.spread, 0);
    EXPECT_GT(row.to_standard.median, 0);
    EXPECT_EQ(row.to_standard.median, row.to_standard.best);  // of one run
    // f32 is never exact here.
    EXPECT_GT(row.rel_l2(), 0);
    EXPECT_LT(row.rel_l2(), 2e-6);
    EXPECT_EQ(std::isnan(row.rel_l2_y), row.direction != forward);
    EXPECT_EQ(std::isnan(row.rel_l2_dx), row.direction == forward || row.direction == dw);
    EXPECT_EQ(std::isnan(row.rel_l2_dw), row.direction == forward || row.direction == dx);
    EXPECT_EQ(std::isnan(row.rel_l2_db), row.direction == forward || row.direction == dx);
    const double order = Group::get(row.group).order();
    const double products =
        row.impl == "flash" ? Group::get(row.group).fewest_form().products() : order * order;
    const double flops = (row.direction == backward ? 4 : 2) * products * 300 *
                         static_cast<double>(row.channels * row.channels);
    EXPECT_NEAR(row.gflops * row.ms.median * 1e6, flops, 1e-9 * flops);
    EXPECT_DOUBLE_EQ(row.peak_fraction, row.gflops / result.machine.peak_gflops);
    if (row.impl == "standard") {
      EXPECT_EQ(row.to_standard.median, 1);
    }
  }
  EXPECT_EQ(result.results[0].impl, "standard");
  EXPECT_EQ(result.results[1].kernel, "naive_onednn");
  EXPECT_EQ(result.results[5].direction, backward);
  EXPECT_TRUE(result.results[5].kernel.starts_with("flash2_")) << result.results[5].kernel;
}

TEST(BenchOp, RunsSeveralTimesAndTakesThePlainForm) {
  BenchOpOptions options = quick_options();
  options.channels = {4};
  options.directions = {OpDirection::forward};
  options.impls = {"flash"};
  options.runs = 3;
  options.products = plain_products;
  const BenchOpResult result = bench_op(options);
  EXPECT_EQ(result.runs, 3);
  ASSERT_EQ(result.results.size(), 6u);
  for (const BenchOpRow& row : result.results) EXPECT_GE(row.to_standard.best, row.to_standard.median);
  EXPECT_TRUE(result.results[3].kernel.starts_with("flash6_")) << result.results[3].kernel;
}

TEST(BenchOp, StandardAndEquivariantGradientsAreTheSameNumbers) {
  const Group& group = Group::get("c4");
  RandomStream stream(1, Purpose::test);
  const Tensor x = random_normal({50, 3, 4}, 1, stream), dy = random_normal({50, 3, 4}, 1, stream);
  const Tensor w = random_normal({3, 3, 4}, 1, stream), b = random_normal({3}, 1, stream);
  OpLayer standard(group, "standard", 0, w, b), flash(group, "flash", 0, w, b);
  const auto one = standard.folded(standard.backward(x, dy, OpDirection::backward));
  const auto two = flash.folded(flash.backward(x, dy, OpDirection::backward));
  for (const auto& [a, c] : {std::pair(one.x, two.x), {one.w, two.w}, {one.b, two.b}}) {
    ASSERT_EQ(a.shape(), c.shape());
    const auto p = a.to_vector(), q = c.to_vector();
    for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], q[i], 1e-4);
  }
  EXPECT_FALSE(flash.backward(x, dy, OpDirection::dx).w.defined());
  EXPECT_FALSE(standard.backward(x, dy, OpDirection::dw).x.defined());
}

TEST(BenchOp, RefusesWhatCannotBeMeasured) {
  const auto error_with = [](auto change) {
    BenchOpOptions options = quick_options();
    change(options);
    return test::error_of<ValueError>([&] { bench_op(options); });
  };
  EXPECT_THAT(error_with([](auto& o) { o.channels = {4, 0}; }), HasSubstr("0 channels"));
  EXPECT_THAT(error_with([](auto& o) { o.rows = 0; }), HasSubstr("rows"));
  EXPECT_THAT(error_with([](auto& o) { o.runs = 0; }), HasSubstr("runs"));
  EXPECT_THAT(error_with([](auto& o) { o.products = 5; }), HasSubstr("5 is not one of 0, 2, 2 of group c2"));
  EXPECT_THAT(error_with([](auto& o) { o.groups = {"c5"}; }), HasSubstr("c5"));
  EXPECT_THAT(error_with([](auto& o) { o.impls = {"flush"}; }), HasSubstr("flush"));
  EXPECT_THAT(test::error_of<ValueError>([] { parse_op_direction("up"); }),
              HasSubstr("'up' is not one of forward, backward, dx, dw"));
}

}  // namespace
}  // namespace gyre
