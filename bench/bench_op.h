#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/machine.h"

namespace gyre {

/// `gyre bench op`: one linear layer, f32, forward and backward: standard (ordinary, oneDNN with packed
/// weights), naive and flash EQ-Linear of equal total width.
struct BenchOpOptions {
  std::string group = "c4";
  std::vector<std::int64_t> channels{16, 32, 64, 96, 128, 256, 512, 1024};  ///< per group element, in = out
  std::int64_t rows = 4096;
  int products = 0;      ///< of the flash form; 0: fewest
  int rounds = 9;        ///< of each implementation, alternating
  double seconds = 0.1;  ///< per round and implementation, at least one call
};

struct BenchOpRow {
  std::string impl;       ///< standard | naive | flash
  std::string kernel;     ///< what ran
  std::string direction;  ///< forward | backward (dX, dW and db)
  std::int64_t channels = 0;
  double ms_median = 0, ms_min = 0, ms_max = 0;
  double gflops = 0;             ///< executed, without transforms, at the median time
  double peak_fraction = 0;      ///< gflops / measured peak
  double ratio_to_standard = 0;  ///< median over rounds of the ratio within a round; above 1 is faster
  double rel_l2 =
      0;  ///< of the outputs against f64 on at most 256 rows; backward: the largest of dX, dW and db
};

struct BenchOpResult {
  Machine machine;
  double peak_gflops = 0;
  std::string group;
  std::int64_t rows = 0;
  std::vector<BenchOpRow> results;
};

/// Generating data and allocating are outside the timed part; packed weights and planes are built before it
/// on both sides. Throws ValueError for options that do not fit.
BenchOpResult bench_op(const BenchOpOptions& options);

}  // namespace gyre
