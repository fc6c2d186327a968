#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/op_layer.h"
#include "bench/statistics.h"

namespace gyre {

/// BenchOpOptions::products for the plain form of each group (c4: 6).
inline constexpr int plain_products = -1;

/// `gyre bench op`: one linear layer, f32: standard (ordinary, oneDNN with packed weights) and EQ-Linear of
/// equal total width.
struct BenchOpOptions {
  std::vector<std::string> groups{"c4"};
  std::vector<std::int64_t> channels{16, 32, 64, 96, 128, 256, 512, 1024};  ///< per group element, in = out
  std::vector<OpDirection> directions{OpDirection::forward, OpDirection::backward};
  std::vector<std::string> impls{"naive", "flash"};  ///< backends beside standard
  std::int64_t rows = 4096;
  int products = 0;      ///< of the flash forms: 0 for the fewest, plain_products, or a count of every group
  int runs = 1;          ///< over everything, one after the other
  int rounds = 9;        ///< of each implementation in a run, alternating
  double seconds = 0.1;  ///< per round and implementation, at least one call
};

struct BenchOpRow {
  std::string group;
  std::string impl;    ///< standard, or the backend asked for
  std::string kernel;  ///< what ran
  OpDirection direction = OpDirection::forward;
  std::int64_t channels = 0;
  Timing ms;
  double gflops = 0;         ///< executed, without transforms, at the median time
  double peak_fraction = 0;  ///< gflops / measured peak
  Ratio to_standard;
  /// Of the results against f64: Y on at most 256 rows, gradients on all. NaN where not computed.
  double rel_l2_y, rel_l2_dx, rel_l2_dw, rel_l2_db;
  /// The largest of them.
  double rel_l2() const;
};

struct BenchOpResult {
  Machine machine;
  std::int64_t rows = 0;
  int runs = 0;
  std::vector<BenchOpRow> results;
};

/// Generating data and allocating are outside the timed part; packed weights and planes are built before it
/// on both sides. Throws ValueError for options that do not fit.
BenchOpResult bench_op(const BenchOpOptions& options);

/// Products of the flash form that `products` (as in BenchOpOptions) means for `group`. Throws ValueError for
/// a count that the group does not have.
int products_of(const Group& group, int products);

}  // namespace gyre
