#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/tensor.h"
#include "data/data_config.h"

namespace gyre {

/// What turns a picture into model input: channels made grey or RGB, the central square scaled to
/// `native_size`, zeros around it up to `size`, then (value / 255 - mean) / std per channel (padding is
/// normalised too). Stored in checkpoints, so that evaluation and prediction repeat it.
struct Preprocessing {
  int channels = 1;      ///< 1 or 3
  int native_size = 28;  ///< side before padding
  int size = 32;         ///< side after it; size - native_size is even, so that padding keeps the centre
  std::vector<double> mean = {0.0}, std = {1.0};

  /// ValueError naming the value that does not fit.
  void check() const;
  /// Text values that from_map reads back exactly.
  std::map<std::string, std::string> to_map() const;
  /// Checked; ValueError naming a key that is missing, unknown or malformed.
  static Preprocessing from_map(const std::map<std::string, std::string>& values);
  bool operator==(const Preprocessing&) const = default;
};

/// The random part of a transform, drawn: shift in pixels (right, down), then mirror left-right, then
/// counter-clockwise quarter turns.
struct Placement {
  int dx = 0, dy = 0;
  bool flip = false;
  int quarter_turns = 0;
};
/// Draws in a fixed order, whatever is switched on, so that one option never changes another's numbers.
Placement draw_placement(const AugmentConfig& config, RandomStream& stream);

/// u8 image → f32 [channels, size, size] in a slot of the caller's: pure, thread-safe, and for images of the
/// native shape one pass without allocation.
class Pipeline {
 public:
  /// For evaluation.
  explicit Pipeline(Preprocessing preprocessing);
  /// For training.
  Pipeline(Preprocessing preprocessing, AugmentConfig augment);

  const Preprocessing& preprocessing() const { return preprocessing_; }
  bool augments() const;
  std::int64_t slot_size() const;
  void operator()(const Tensor& image, RandomStream& stream, std::span<float> slot) const;
  /// With a given placement. ShapeError unless image is u8 [1 or 3, H, W] and the slot holds slot_size()
  /// values.
  void place(const Tensor& image, const Placement& placement, std::span<float> slot) const;

 private:
  Preprocessing preprocessing_;
  AugmentConfig augment_;
  std::vector<std::array<float, 256>> normalised_;  // per channel, by pixel value
};

/// A picture of any size, u8 [1 or 3, H, W] → f32 [channels, size, size].
Tensor preprocess_image(const Tensor& image, const Preprocessing& preprocessing);

}  // namespace gyre
