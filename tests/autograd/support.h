#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/gradcheck.h"
#include "core/random.h"

namespace gyre::test {

/// Uniform in [-1, 1); `salt` tells the tensors of one test apart.
inline Tensor random_tensor(const Shape& shape, std::uint64_t salt = 0, DType dtype = DType::f64) {
  RandomStream stream(7, Purpose::test, salt);
  return random_uniform(shape, -1, 1, stream, dtype);
}

/// check_all_layouts as an assertion.
inline testing::AssertionResult gradients_agree(const Operation& operation, const std::vector<Shape>& shapes,
                                                const GradcheckOptions& options = {}) {
  const GradcheckResult result = check_all_layouts(operation, shapes, options);
  if (result.pass) return testing::AssertionSuccess() << "worst " << result.worst;
  return testing::AssertionFailure() << result.where;
}

/// The text of the error that `f` throws, "no error" if none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace gyre::test
