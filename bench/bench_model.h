#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/statistics.h"
#include "core/profile.h"
#include "train/config.h"

namespace gyre {

/// `gyre bench model` and `gyre bench train`: inference or training steps of the standard model and of its
/// equivariant twin at equal width, on the same batches held in memory, interleaved.
struct BenchModelOptions {
  Device device;
  Config config;               ///< model, optimiser and batch; images come from its data
  bool training = false;       ///< whole updates, else forward passes without gradients
  bool random_images = false;  ///< also taken where the data is not there
  std::vector<std::string> impls{"naive", "flash"};  ///< backends beside standard
  int runs = 1;                                      ///< one after the other
  int rounds = 7;                                    ///< of each implementation in a run, alternating
  double seconds = 1;                                ///< per round and implementation, at least one step
};

struct BenchModelRow {
  std::string impl;                  ///< standard, or the backend asked for
  std::vector<std::string> kernels;  ///< of EQ-Linear; empty for standard
  Timing ms;                         ///< of one step
  double images_per_s = 0;           ///< at the median time
  /// Of the time of one step: all linear layers (patch embedding and head too), forward and backward, with
  /// their bias gradients; from steps of their own after the timed ones.
  double linear_share = 0;
  Ratio to_standard, to_naive;  ///< to_naive is 0 where naive did not run
  double peak_memory_mb = 0;  ///< of tensors on the device: weights, activations and, in training, gradients
                              ///< and moments; without the batches
  /// Those steps by operation, longest first, the rest as "other".
  std::vector<Profile::Entry> profile;
  std::int64_t profiled_steps = 0;
  double profiled_seconds = 0;
};

struct BenchModelResult {
  Machine machine;
  Device device;
  std::string model;
  std::string images;  ///< "fashion_mnist", "random" or "random (why)"
  std::int64_t batch = 0;
  int runs = 0;
  std::vector<BenchModelRow> results;
};

/// Throws ConfigError or ValueError for a model that has no twin, Error if a loss is not finite.
BenchModelResult bench_model(const BenchModelOptions& options);

}  // namespace gyre
