#pragma once

#include "core/random.h"
#include "core/tensor.h"

namespace gyre {

/// While alive, parameters made on this thread keep whatever their memory holds: for models whose weights are
/// not read.
class WithoutInitialisation {
 public:
  WithoutInitialisation();
  ~WithoutInitialisation();
  WithoutInitialisation(const WithoutInitialisation&) = delete;
  WithoutInitialisation& operator=(const WithoutInitialisation&) = delete;

 private:
  bool previous_;
};

/// How a parameter starts.
struct Initialiser {
  enum class Kind { truncated_normal, uniform, zero };
  Kind kind = Kind::zero;
  double scale = 0;  ///< standard deviation, or bound of the range

  /// Normal(0, std) within ±2 std.
  static Initialiser truncated_normal(double std = 0.02) { return {Kind::truncated_normal, std}; }
  /// Uniform in [-bound, bound).
  static Initialiser uniform(double bound) { return {Kind::uniform, bound}; }

  /// An f32 tensor; zero draws nothing from `stream`.
  Tensor operator()(const Shape& shape, RandomStream& stream) const;
};

}  // namespace gyre
