#pragma once

#include <functional>
#include <vector>

#include "core/group.h"
#include "core/tensor.h"
#include "layers/module.h"

namespace gyre {

/// What a tensor means, hence how a group element acts on it.
struct Meaning {
  enum class Kind { image, feature_map, tokens, vector, invariant };
  Kind kind = Kind::image;
  int height = 0, width = 0;  ///< of the token grid
  int prefix = 0;             ///< tokens without a position

  static Meaning image() { return {}; }                                  ///< [..., H, W]
  static Meaning feature_map() { return {Kind::feature_map, 0, 0, 0}; }  ///< [..., T, H, W]
  /// [B, prefix + height·width, C·T]
  static Meaning tokens(int height, int width, int prefix = 0) {
    return {Kind::tokens, height, width, prefix};
  }
  static Meaning vector() { return {Kind::vector, 0, 0, 0}; }        ///< [..., C·T]
  static Meaning invariant() { return {Kind::invariant, 0, 0, 0}; }  ///< unchanged, such as logits
};

/// g·x by core/group_action.h.
Tensor act(const Group& group, int g, const Tensor& x, const Meaning& meaning);

/// How far f(g·x) is from g·f(x); infinite where f(x) is zero everywhere or not finite, so that neither
/// passes.
struct EquivarianceError {
  int element = 0;
  double nmae = 0;    ///< mean |f(gx) - g f(x)| / mean |g f(x)|
  double rel_l2 = 0;  ///< ‖f(gx) - g f(x)‖ / ‖g f(x)‖
};

/// f(g·x) against g·f(x).
EquivarianceError equivariance_error(int element, const Tensor& value, const Tensor& reference);

/// One entry per element of the group, the unit included. The errors are taken in f64, `f` runs in the type
/// of `x`.
std::vector<EquivarianceError> check_equivariance(const std::function<Tensor(const Tensor&)>& f,
                                                  const Group& group, const Tensor& x, const Meaning& input,
                                                  const Meaning& output);
/// The same for a module in eval mode (its mode is restored); x has the type of its parameters.
std::vector<EquivarianceError> check_equivariance(Module& module, const Group& group, const Tensor& x,
                                                  const Meaning& input, const Meaning& output);
/// The largest nmae.
double worst_nmae(const std::vector<EquivarianceError>& errors);

}  // namespace gyre
