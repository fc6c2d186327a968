#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/cuda/prim.cuh"
#include "core/random.h"
#include "tests/simt/support.h"

namespace gyre::simt {

/// The rounding of a type: half the distance of 1 to the next number.
template <class T>
constexpr double rounding() {
  if (std::is_same_v<T, double>) return 0x1p-53;
  if (std::is_same_v<T, float>) return 0x1p-24;
  return std::is_same_v<T, prim::half_t> ? 0x1p-11 : 0x1p-8;
}

template <class T>
T narrowed(double value) {
  return prim::from_float<T>(static_cast<prim::Wide<T>>(value));
}

template <class T>
std::vector<T> narrowed(const std::vector<double>& values) {
  std::vector<T> result;
  for (const double value : values) result.push_back(narrowed<T>(value));
  return result;
}

template <class T>
std::vector<double> widened(const std::vector<T>& values) {
  std::vector<double> result;
  for (const T& value : values) result.push_back(static_cast<double>(prim::widen(value)));
  return result;
}

/// Fresh normal values; `seed` tells the arrays of a test apart.
template <class T>
std::vector<T> normal_values(std::int64_t count, std::uint64_t seed, double std = 1, double mean = 0) {
  RandomStream stream(seed, Purpose::test);
  std::vector<double> values = random_normal({count}, std, stream, DType::f64).to_vector();
  for (double& value : values) value += mean;
  return narrowed<T>(values);
}

/// Every element within `rounds` roundings of T, and `steps` of the arithmetic behind it, relative to
/// max(1, |wanted|); NaN matches NaN and infinities must be equal.
template <class T>
void expect_close(const std::vector<T>& got, const std::vector<double>& wanted, double rounds = 1,
                  double steps = 16) {
  ASSERT_EQ(got.size(), wanted.size());
  const double limit = rounds * rounding<T>() + steps * rounding<prim::Wide<T>>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto value = static_cast<double>(prim::widen(got[i]));
    if (std::isnan(wanted[i])) {
      ASSERT_TRUE(std::isnan(value)) << "element " << i << " is " << value;
    } else if (std::isinf(wanted[i])) {
      ASSERT_EQ(value, wanted[i]) << "element " << i;
    } else {
      ASSERT_LE(std::abs(value - wanted[i]), limit * std::max(1.0, std::abs(wanted[i])))
          << "element " << i << " is " << value << ", wanted " << wanted[i];
    }
  }
}

/// Calls test(T{}) for every floating type of kernels.
template <class F>
void for_all_types(F test) {
  const auto run = [&](auto value, const char* name) {
    SCOPED_TRACE(name);
    test(value);
  };
  run(float{}, "f32");
  run(double{}, "f64");
  run(prim::half_t{}, "f16");
  run(prim::bf16_t{}, "bf16");
}

}  // namespace gyre::simt
