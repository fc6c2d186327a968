#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/file.h"
#include "tests/train/support.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace gyre::test {

/// The lines of metrics.jsonl without what depends on the clock.
inline std::vector<nlohmann::json> metrics_of(const std::filesystem::path& run) {
  std::vector<nlohmann::json> lines;
  const std::string text = read_file(run / "metrics.jsonl");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    nlohmann::json line = nlohmann::json::parse(text.substr(at, end - at));
    for (const char* key : {"seconds", "images_per_s", "time"}) line.erase(key);
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

inline std::size_t count_lines(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Weights, averages, moments, position and records of two runs, bit for bit.
inline void expect_same_run(const std::filesystem::path& a, const std::filesystem::path& b) {
  const Checkpoint left = read_checkpoint(a / "checkpoints" / "last");
  const Checkpoint right = read_checkpoint(b / "checkpoints" / "last");
  EXPECT_TRUE(same_bits(left.weights, right.weights));
  EXPECT_TRUE(same_bits(left.ema, right.ema));
  EXPECT_TRUE(same_bits(left.optimizer, right.optimizer));
  EXPECT_EQ(left.state.updates, right.state.updates);
  EXPECT_EQ(left.state.epoch, right.state.epoch);
  EXPECT_EQ(left.state.step, right.state.step);
  EXPECT_EQ(left.state.skipped, right.state.skipped);
  EXPECT_EQ(left.state.ema_updates, right.state.ema_updates);
  EXPECT_EQ(left.state.best_epoch, right.state.best_epoch);
  EXPECT_EQ(left.state.best_top1, right.state.best_top1);
  EXPECT_EQ(metrics_of(a), metrics_of(b));
  EXPECT_EQ(count_lines(a / "summary.csv"), count_lines(b / "summary.csv"));
}

/// The tiny dataset and runs on it.
class TrainerTest : public ::testing::Test {
 protected:
  void SetUp() override { write_tiny_data(folder_); }

  Config config() const { return tiny_config(folder_.path()); }
  std::filesystem::path run_path(const std::string& name) const { return folder_.path() / "runs" / name; }
  TrainOptions options(const std::string& name, std::int64_t max_steps = 0) const {
    TrainOptions options;
    options.out = run_path(name);
    options.max_steps = max_steps;
    options.json = true;  // nothing on the screen
    return options;
  }
  TrainResult train(const Config& config, const std::string& name, std::int64_t max_steps = 0) const {
    return run_training(config, options(name, max_steps));
  }
  TrainResult resume(const Config& config, const std::string& name, std::int64_t max_steps = 0) const {
    TrainOptions asked = options(name, max_steps);
    asked.resume = "auto";
    return run_training(config, asked);
  }
  Checkpoint last(const std::string& name) const {
    return read_checkpoint(run_path(name) / "checkpoints" / "last");
  }

  TempFolder folder_;
};

}  // namespace gyre::test
