#include "bench/bench_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/parallel.h"
#include "tests/train/support.h"

namespace gyre {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

BenchModelOptions tiny_options(const std::filesystem::path& data) {
  set_num_threads(1);
  BenchModelOptions options;
  options.config = test::tiny_config(data);
  options.training = true;
  options.rounds = 3;
  options.seconds = 1e-3;
  return options;
}

/// The operations and "other" add up, and linear layers are part of them.
void expect_whole_profile(const BenchModelRow& row) {
  EXPECT_GE(row.profiled_steps, 1);
  double sum = 0, linear = 0;
  for (const Profile::Entry& entry : row.profile) {
    EXPECT_GE(entry.seconds, 0) << entry.name;
    EXPECT_GE(entry.calls, row.profiled_steps) << entry.name;
    sum += entry.seconds;
    linear += entry.name.find("linear_") != std::string::npos ? entry.seconds : 0;
  }
  EXPECT_NEAR(sum, row.profiled_seconds, 1e-9);
  EXPECT_DOUBLE_EQ(row.linear_share, linear / row.profiled_seconds);
  EXPECT_GT(row.linear_share, 0);
  EXPECT_LT(row.linear_share, 1);
  EXPECT_EQ(row.profile.back().name, "other");
}

void expect_sound(const BenchModelResult& result) {
  ASSERT_EQ(result.results.size(), 3u);
  const BenchModelRow &standard = result.results[0], &naive = result.results[1], &flash = result.results[2];
  EXPECT_EQ(standard.impl, "standard");
  EXPECT_EQ(naive.impl, "naive");
  EXPECT_EQ(flash.impl, "flash");
  EXPECT_TRUE(standard.kernels.empty());
  EXPECT_FALSE(naive.kernels.empty());
  EXPECT_THAT(naive.kernels, Each(HasSubstr("naive")));
  EXPECT_FALSE(flash.kernels.empty());
  EXPECT_THAT(flash.kernels, Each(HasSubstr("flash")));
  for (const BenchModelRow& row : result.results) {
    SCOPED_TRACE(row.impl);
    EXPECT_GT(row.ms.min, 0);
    EXPECT_LE(row.ms.min, row.ms.median);
    EXPECT_LE(row.ms.median, row.ms.max);
    EXPECT_NEAR(row.images_per_s, 1e3 * static_cast<double>(result.batch) / row.ms.median,
                1e-9 * row.images_per_s);
    EXPECT_GT(row.peak_memory_mb, 0);
    expect_whole_profile(row);
  }
  EXPECT_EQ(standard.to_standard.median, 1);
  EXPECT_EQ(naive.to_naive.median, 1);
  // Three rounds: the median of ratios is the ratio of some round, hence within the extremes.
  for (const BenchModelRow& row : {naive, flash}) {
    EXPECT_LE(row.to_standard.median, standard.ms.max / row.ms.min);
    EXPECT_GE(row.to_standard.median, standard.ms.min / row.ms.max);
  }
  EXPECT_LE(flash.to_naive.median, naive.ms.max / flash.ms.min);
  EXPECT_GE(flash.to_naive.median, naive.ms.min / flash.ms.max);
  EXPECT_FALSE(result.machine.cpu.empty());
  EXPECT_GE(result.machine.threads, 1);
}

TEST(BenchModel, MeasuresThreeTwinsOnTheData) {
  const test::TempFolder data;
  test::write_tiny_data(data);
  const BenchModelResult result = bench_model(tiny_options(data.path()));
  expect_sound(result);
  EXPECT_EQ(result.model, "eq_vit");
  EXPECT_EQ(result.batch, 20);
  EXPECT_EQ(result.images, data.path().string());
}

TEST(BenchModel, TakesRandomImagesWhereThereIsNoData) {
  BenchModelOptions options = tiny_options("/no/such/folder");
  options.config.model.image_size = 8;
  const BenchModelResult result = bench_model(options);
  expect_sound(result);
  EXPECT_EQ(result.batch, 20);
  EXPECT_THAT(result.images, StartsWith("random (/no/such/folder"));
}

TEST(BenchModel, FindsTheTwinsOfAPlainModel) {
  BenchModelOptions options = tiny_options("/no/such/folder");
  options.config.model.name = "vit";
  options.config.model.image_size = 8;
  expect_sound(bench_model(options));
  // 8 channels per head do not split into 3 · 4.
  options.config.model.width = 18;
  EXPECT_THAT(test::error_of<Error>([&] { bench_model(options); }), HasSubstr("width"));
}

TEST(BenchModel, MemoryGrowsWithTheBatch) {
  BenchModelOptions options = tiny_options("/no/such/folder");
  options.config.model.image_size = 8;
  options.rounds = 1;
  const BenchModelResult small = bench_model(options);
  options.config.train.batch_size = 400;
  const BenchModelResult large = bench_model(options);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_GT(large.results[i].peak_memory_mb, 3 * small.results[i].peak_memory_mb);
}

TEST(BenchModel, RefusesWhatDoesNotFit) {
  const test::TempFolder data;
  test::write_tiny_data(data);
  BenchModelOptions options = tiny_options(data.path());
  options.config.train.batch_size = 5000;
  EXPECT_THAT(test::error_of<ConfigError>([&] { bench_model(options); }),
              HasSubstr("train.batch_size: 240 samples, batch 5000"));
  options = tiny_options(data.path());
  options.config.model.classes = 9;
  options.config.model.given.insert("classes");
  EXPECT_THAT(test::error_of<ConfigError>([&] { bench_model(options); }), HasSubstr("model.classes: 9"));
  options = tiny_options(data.path());
  options.rounds = 0;
  EXPECT_THAT(test::error_of<ValueError>([&] { bench_model(options); }), HasSubstr("0 rounds"));
}

TEST(BenchModel, InferenceIsSmallerThanTraining) {
  BenchModelOptions options = tiny_options("/no/such/folder");
  options.config.model.image_size = 8;
  options.random_images = true;
  const BenchModelResult training = bench_model(options);
  options.training = false;
  options.impls = {"flash"};
  options.runs = 2;
  const BenchModelResult inference = bench_model(options);
  EXPECT_EQ(training.images, "random");
  ASSERT_EQ(inference.results.size(), 2u);
  EXPECT_EQ(inference.runs, 2);
  const BenchModelRow& flash = inference.results[1];
  EXPECT_EQ(flash.impl, "flash");
  EXPECT_GE(flash.to_standard.best, flash.to_standard.median);
  EXPECT_EQ(flash.to_naive.median, 0);
  EXPECT_LT(flash.peak_memory_mb, training.results[2].peak_memory_mb / 2);
  for (const BenchModelRow& row : inference.results) {
    expect_whole_profile(row);
    for (const Profile::Entry& entry : row.profile) {
      EXPECT_THAT(entry.name, Not(HasSubstr("backward")));
      EXPECT_NE(entry.name, "adamw_step");
    }
  }
}

}  // namespace
}  // namespace gyre
