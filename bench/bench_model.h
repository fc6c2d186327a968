#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "train/config.h"

namespace gyre {

/// `gyre bench train`: training steps of the standard model and of its equivariant twin (naive, flash) at
/// equal width, on the same batches held in memory, interleaved.
struct BenchTrainOptions {
  Config
      config;  ///< model, optimiser and batch; images come from its data, or are random if that is not there
  int rounds = 7;      ///< of each implementation, alternating
  double seconds = 1;  ///< per round and implementation, at least one step
};

struct BenchTrainRow {
  std::string impl;                  ///< standard | naive | flash
  std::vector<std::string> kernels;  ///< of EQ-Linear; empty for standard
  double images_per_s = 0;           ///< from the median round
  double ms_per_step = 0;            ///< median
  double ms_min = 0, ms_max = 0;
  double ratio_to_standard = 0;  ///< median over rounds of the ratio within a round; above 1 is faster
  double ratio_to_naive = 0;
  double peak_memory_mb =
      0;  ///< of tensors: weights, moments, gradients and activations, without the batches
};

struct BenchTrainResult {
  Machine machine;
  std::string model;
  std::string images;  ///< "fashion_mnist", or "random (why)"
  std::int64_t batch = 0;
  std::vector<BenchTrainRow> results;
};

/// Throws ConfigError or ValueError for a model that has no twin, Error if a loss is not finite.
BenchTrainResult bench_train(const BenchTrainOptions& options);

}  // namespace gyre
