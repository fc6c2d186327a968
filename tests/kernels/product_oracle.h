#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/kernels/op_test.h"

// Oracles for matrix products.
namespace gyre::kernels {

/// ‖value - reference‖ / ‖reference‖.
inline double relative_l2(const std::vector<double>& value, const std::vector<double>& reference) {
  EXPECT_EQ(value.size(), reference.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < std::min(value.size(), reference.size()); ++i) {
    difference += (value[i] - reference[i]) * (value[i] - reference[i]);
    norm += reference[i] * reference[i];
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

/// Triple loop over m×k times k×n, element i,j of an operand by a function, sums in the type Sum.
template <class Sum, class A, class B>
std::vector<double> plain_product(std::int64_t m, std::int64_t n, std::int64_t k, A a, B b) {
  std::vector<double> c;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      Sum sum = 0;
      for (std::int64_t l = 0; l < k; ++l) sum += static_cast<Sum>(a(i, l)) * static_cast<Sum>(b(l, j));
      c.push_back(static_cast<double>(sum));
    }
  }
  return c;
}

/// Passes if `value` is at most twice as far from the f64 product as plain f32 dot products are, plus one
/// rounding.
inline void expect_f32_accuracy(const std::vector<double>& value, const std::vector<double>& exact,
                                const std::vector<double>& plain) {
  EXPECT_LE(relative_l2(value, exact), 2 * relative_l2(plain, exact) + 1.2e-7);
}

}  // namespace gyre::kernels
