#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/tensor.h"
#include "models/model.h"

namespace gyre {

/// How far a tensor lies from its reference (docs/math.md section 8).
struct TensorError {
  double rel_l2 = 0;  ///< infinite where the reference is zero everywhere or something is not finite
  double max_abs = 0;
  double mean_abs = 0;
  double p99_rel = 0;  ///< 99th percentile of |error| / |ref| where |ref| > floor; NaN if it is nowhere
};
TensorError tensor_error(const Tensor& value, const Tensor& reference, double floor);

/// Flash against naive on one tensor of an EQ-Linear layer: that of the layer where it is worst.
struct ExactnessRow {
  std::string tensor;  ///< "Y", "dX", "dW" or "db"
  std::string layer;   ///< "blocks.0.attn.qkv"
  DType dtype = DType::f32;
  TensorError error;
  bool pass = false;  ///< rel_l2 ≤ exactness_mark(dtype)
};

/// How far f(g·x) is from g·f(x).
struct EquivarianceRow {
  std::string
      scope;  ///< a kind of layer, "EqAttention"; "model"; or "outside", where elements are not of the group
  std::string element;  ///< "turn 90", "mirror", …: see element_name()
  DType dtype = DType::f32;
  double nmae = 0;
  double rel_l2 = 0;
  bool pass = false;  ///< nmae ≤ equivariance_mark(); for "outside" nmae ≥ outside_mark
};

struct VerifyOptions {
  std::int64_t samples = 0;  ///< images; 0: 1 to 8, fewer for larger models
  std::uint64_t seed = 0;    ///< of the images
  /// Told what is done next and which share of the work is behind.
  std::function<void(std::string_view task, double fraction)> progress = {};
};

struct VerifyResult {
  std::string group;  ///< whose elements were tried: c4 for a model without symmetry
  std::int64_t samples = 0;
  std::int64_t layers = 0;  ///< EQ-Linear layers compared
  std::vector<ExactnessRow> exactness;
  std::vector<EquivarianceRow> equivariance;  ///< layers first, then the model, then elements outside

  bool pass() const;
};

inline constexpr double outside_mark = 1e-4;                    ///< ten times what rounding in f32 may reach
double exactness_mark(DType dtype);                             ///< f32 1e-6, f64 1e-12
double equivariance_mark(std::string_view scope, DType dtype);  ///< f32 1e-5; f64 1e-12, "model" 1e-10

/// The d4 element k + 4f, columns reversed if f, then k quarter turns counter-clockwise: "none", "turn 90",
/// "mirror", "mirror, turn 90" …
std::string element_name(int d4_element);

/// Proves a model, where it lives, on images of standard normal values, in f32 and then in f64: each kind of
/// EQ-Linear layer by flash and by naive on the values it meets inside the model (Y, dX, dW, db; Flash
/// EQ-Linear paper, arXiv 2607.21271, tables 10 and 11), each kind of equivariant layer and the whole model
/// under every element of the group, and that elements of d4 outside the group (for d4 itself a shift by one
/// pixel) do change the logits. Of layers of one kind and size the first and the last are taken. Leaves the
/// model in evaluation mode and f64.
VerifyResult verify_model(Model& model, const VerifyOptions& options = {});

}  // namespace gyre
