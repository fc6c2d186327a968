#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/variable.h"

namespace gyre {

/// A differentiable function under test.
using Operation = std::function<Variable(std::vector<Variable>&)>;

struct GradcheckOptions {
  double tolerance = 1e-6;    ///< of |analytic - numeric|, relative to the input's largest derivative
  double step = 1e-5;         ///< of the central differences
  double low = -1, high = 1;  ///< range of the random inputs that check_all_layouts draws
  std::uint64_t seed = 1;
};

struct GradcheckResult {
  bool pass = true;
  double worst = 0;   ///< largest relative error seen
  std::string where;  ///< first failure in words, else empty
};

/// Compares the whole Jacobian with central differences in f64: every output element against every element of
/// every input. The incoming gradients are dense, transposed and expanded. Also fails if all outputs are
/// zero, or if a second run differs in any bit. `inputs` are f64 of any strides, and reach `operation` with
/// these strides.
GradcheckResult gradcheck(const Operation& operation, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {});

enum class Layout { contiguous, transposed, sliced, expanded };
/// A tensor of the shape and, but for `expanded`, the values of `values`: `transposed` has its dimensions
/// reversed in memory, `sliced` is every other element of a larger block, `expanded` repeats the first values
/// of the first dimension above 1.
Tensor with_layout(const Tensor& values, Layout layout);

/// gradcheck on random inputs of `shapes`, once per layout.
GradcheckResult check_all_layouts(const Operation& operation, const std::vector<Shape>& shapes,
                                  const GradcheckOptions& options = {});

}  // namespace gyre
