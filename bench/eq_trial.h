#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/statistics.h"
#include "kernels/eq_linear.h"

namespace gyre {

/// One EQ-Linear layer, f32.
struct EqSizes {
  std::string group = "c4";
  std::int64_t rows = 1, channels_in = 1, channels_out = 1;  ///< channels per group element
  bool bias = true;
  kernels::Activation activation = kernels::Activation::none;
};

/// The layer on random data, computed by every backend and, as the contestant "standard", by an ordinary
/// linear layer with the expanded matrix (oneDNN, packed weights). Whatever is derived from weights is built
/// by the first call and kept.
class EqTrial {
 public:
  /// The same data for the same sizes and `seed`.
  EqTrial(const EqSizes& sizes, std::uint64_t seed);

  /// `backend` none: standard. The last result is kept for `error`.
  void forward(std::optional<kernels::EqBackend> backend);
  void backward(std::optional<kernels::EqBackend> backend);
  void run(kernels::EqDirection direction, std::optional<kernels::EqBackend> backend);
  /// Relative L2 distance of the last result of a backend from f64; backward: the largest of dX, dW and db.
  double error(kernels::EqDirection direction);
  /// Name of what a backend runs.
  std::string kernel(kernels::EqDirection direction, kernels::EqBackend backend) const;

 private:
  struct Contestant {
    kernels::EqPlanes planes;
    kernels::PackedWeight packed;
  };
  struct Result {
    Tensor y;
    kernels::LinearGrads grads;
  };
  Tensor gradient_before_activation(const Tensor& h, const Tensor& dy) const;

  const Group& group_;
  EqSizes sizes_;
  Tensor x_, w_, b_, dy_, h_;                             // h: before the activation
  Tensor flat_x_, flat_dy_, flat_h_, dense_w_, dense_b_;  // of the standard layer
  Contestant contestants_[6];
  Result last_;
  std::optional<Result> exact_[2];  // per direction
};

/// One more run of each contestant in alternating rounds, added to `runs` in milliseconds per call. A round
/// of a contestant lasts `seconds` or one call; two calls of each before that are not counted.
void time_calls(std::span<const std::function<void()>> contestants, int rounds, double seconds,
                std::span<Runs> runs);

}  // namespace gyre
