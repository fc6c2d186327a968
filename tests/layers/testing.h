#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "autograd/variable.h"
#include "core/error.h"
#include "core/random.h"
#include "core/tensor.h"

namespace gyre::testing {

/// Standard normal values; `index` keeps the tensors of one test apart.
inline Tensor random(const Shape& shape, std::uint64_t index = 0, DType dtype = DType::f64) {
  RandomStream stream(11, Purpose::test, index);
  return random_normal(shape, 1.0, stream, dtype);
}

inline RandomStream init_stream(std::uint64_t index = 0) { return RandomStream(3, Purpose::init, index); }

inline double rel_l2(const Tensor& value, const Tensor& reference) {
  EXPECT_EQ(value.shape(), reference.shape());
  const std::vector<double> a = value.to_vector(), b = reference.to_vector();
  double difference = 0, magnitude = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    magnitude += b[i] * b[i];
  }
  EXPECT_GT(magnitude, 0) << "the reference is zero everywhere";
  return std::sqrt(difference / magnitude);
}

inline double dot(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector(), y = b.to_vector();
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

/// The text of the error that `f` throws.
template <class E = Error>
std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error of the expected type was thrown";
  return "";
}

/// rot90(x, 1)[i][j] = x[j][n-1-i] and column reversal, written out for one n × n plane: independent of
/// core/group_action.
inline std::vector<double> rotated(const std::vector<double>& x, int n) {
  std::vector<double> y(x.size());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      y[static_cast<std::size_t>(i * n + j)] = x[static_cast<std::size_t>(j * n + n - 1 - i)];
  return y;
}
inline std::vector<double> mirrored(const std::vector<double>& x, int n) {
  std::vector<double> y(x.size());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      y[static_cast<std::size_t>(i * n + j)] = x[static_cast<std::size_t>(i * n + n - 1 - j)];
  return y;
}

}  // namespace gyre::testing
