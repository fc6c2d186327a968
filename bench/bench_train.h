#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config.h"

namespace gyre {

/// `gyre bench train`: training steps of the standard model and of its equivariant twin (naive, flash) at equal width, on the same
/// batches held in memory, interleaved.
struct BenchTrainOptions {
  Config config;          ///< model and optimiser; data decides only image size and classes
  int rounds = 7;         ///< of each implementation, alternating
  double seconds = 1;     ///< per round and implementation, at least one step
};

struct BenchTrainRow {
  std::string impl;       ///< standard | naive | flash
  std::vector<std::string> kernels;
  double images_per_s = 0;   ///< from the median round
  double ms_per_step = 0;    ///< median
  double ms_min = 0, ms_max = 0;
  double ratio_to_standard = 0;  ///< median over rounds of the ratio within a round; above 1 is faster
  double ratio_to_naive = 0;
  double peak_memory_mb = 0;     ///< of tensors
};

struct BenchTrainResult {
  std::string model;
  std::int64_t batch = 0;
  std::string cpu;
  int threads = 0;
  std::vector<BenchTrainRow> results;
};

BenchTrainResult bench_train(const BenchTrainOptions& options);

}  // namespace gyre
