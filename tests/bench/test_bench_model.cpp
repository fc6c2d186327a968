#include "bench/bench_train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/simd.h"
#include "tests/train/support.h"

namespace gyre {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

BenchTrainOptions tiny_options(const std::filesystem::path& data) {
  BenchTrainOptions options;
  options.config = test::tiny_config(data);
  options.rounds = 3;
  options.seconds = 1e-3;
  return options;
}

void expect_sound(const BenchTrainResult& result) {
  ASSERT_EQ(result.results.size(), 3u);
  const BenchTrainRow &standard = result.results[0], &naive = result.results[1], &flash = result.results[2];
  EXPECT_EQ(standard.impl, "standard");
  EXPECT_EQ(naive.impl, "naive");
  EXPECT_EQ(flash.impl, "flash");
  EXPECT_TRUE(standard.kernels.empty());
  EXPECT_FALSE(naive.kernels.empty());
  EXPECT_THAT(naive.kernels, Each(HasSubstr("naive")));
  EXPECT_FALSE(flash.kernels.empty());
  EXPECT_THAT(flash.kernels, Each(HasSubstr("flash")));
  for (const BenchTrainRow& row : result.results) {
    SCOPED_TRACE(row.impl);
    EXPECT_GT(row.ms_min, 0);
    EXPECT_LE(row.ms_min, row.ms_per_step);
    EXPECT_LE(row.ms_per_step, row.ms_max);
    EXPECT_NEAR(row.images_per_s, 1e3 * static_cast<double>(result.batch) / row.ms_per_step,
                1e-9 * row.images_per_s);
    EXPECT_GT(row.peak_memory_mb, 0);
  }
  EXPECT_EQ(standard.ratio_to_standard, 1);
  EXPECT_EQ(naive.ratio_to_naive, 1);
  // Three rounds: the median of ratios is the ratio of some round, hence within the extremes.
  for (const BenchTrainRow& row : {naive, flash}) {
    EXPECT_LE(row.ratio_to_standard, standard.ms_max / row.ms_min);
    EXPECT_GE(row.ratio_to_standard, standard.ms_min / row.ms_max);
  }
  EXPECT_LE(flash.ratio_to_naive, naive.ms_max / flash.ms_min);
  EXPECT_GE(flash.ratio_to_naive, naive.ms_min / flash.ms_max);
  EXPECT_FALSE(result.machine.cpu.empty());
  EXPECT_EQ(result.machine.simd, name_of(kernels::cpu::simd()));
  EXPECT_GE(result.machine.threads, 1);
}

TEST(BenchTrain, MeasuresThreeTwinsOnTheData) {
  const test::TempFolder data;
  test::write_tiny_data(data);
  const BenchTrainResult result = bench_train(tiny_options(data.path()));
  expect_sound(result);
  EXPECT_EQ(result.model, "eq_vit");
  EXPECT_EQ(result.batch, 20);
  EXPECT_EQ(result.images, data.path().string());
}

TEST(BenchTrain, TakesRandomImagesWhereThereIsNoData) {
  BenchTrainOptions options = tiny_options("/no/such/folder");
  options.config.model.image_size = 8;
  const BenchTrainResult result = bench_train(options);
  expect_sound(result);
  EXPECT_EQ(result.batch, 20);
  EXPECT_THAT(result.images, StartsWith("random (/no/such/folder"));
}

TEST(BenchTrain, FindsTheTwinsOfAPlainModel) {
  BenchTrainOptions options = tiny_options("/no/such/folder");
  options.config.model.name = "vit";
  options.config.model.image_size = 8;
  expect_sound(bench_train(options));
  // 8 channels per head do not split into 3 · 4.
  options.config.model.width = 18;
  EXPECT_THAT(test::error_of<Error>([&] { bench_train(options); }), HasSubstr("width"));
}

TEST(BenchTrain, MemoryGrowsWithTheBatch) {
  BenchTrainOptions options = tiny_options("/no/such/folder");
  options.config.model.image_size = 8;
  options.rounds = 1;
  const BenchTrainResult small = bench_train(options);
  options.config.train.batch_size = 400;
  const BenchTrainResult large = bench_train(options);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_GT(large.results[i].peak_memory_mb, 3 * small.results[i].peak_memory_mb);
}

TEST(BenchTrain, RefusesWhatDoesNotFit) {
  const test::TempFolder data;
  test::write_tiny_data(data);
  BenchTrainOptions options = tiny_options(data.path());
  options.config.train.batch_size = 5000;
  EXPECT_THAT(test::error_of<ConfigError>([&] { bench_train(options); }),
              HasSubstr("train.batch_size: 240 samples, batch 5000"));
  options = tiny_options(data.path());
  options.config.model.classes = 9;
  options.config.model.given.insert("classes");
  EXPECT_THAT(test::error_of<ConfigError>([&] { bench_train(options); }), HasSubstr("model.classes: 9"));
  options = tiny_options(data.path());
  options.rounds = 0;
  EXPECT_THAT(test::error_of<ValueError>([&] { bench_train(options); }), HasSubstr("0 rounds"));
}

TEST(Machine, NamesTheProcessor) {
  EXPECT_EQ(
      cpu_name("processor\t: 0\nmodel\t\t: 17\nmodel name\t: Fast CPU @ 3.00GHz\nflags : x\n", "x86_64"),
      "Fast CPU @ 3.00GHz");
  EXPECT_EQ(cpu_name("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "aarch64"),
            "aarch64 0x41 part 0xd0c");
  EXPECT_EQ(cpu_name("", "riscv64"), "riscv64");
  EXPECT_EQ(cpu_name("model name\t:\n", "riscv64"), "riscv64");
}

}  // namespace
}  // namespace gyre
