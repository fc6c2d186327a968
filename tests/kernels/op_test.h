#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "core/random.h"
#include "core/tensor.h"

namespace gyre::kernels {

/// Sets the number of loop threads while alive.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : previous_(num_threads()) { set_num_threads(count); }
  ~ThreadCount() { set_num_threads(previous_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int previous_;
};

/// Runs `body` with 1 and 2 threads. The instruction set is that of the process: ctest runs the tests once
/// per set.
template <class F>
void everywhere(F body) {
  for (const int threads : {1, 2}) {
    const ThreadCount guard(threads);
    SCOPED_TRACE("threads " + std::to_string(threads));
    body();
  }
}

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Fresh normal values; `seed` tells the tensors of a test apart.
inline Tensor random(const Shape& shape, DType dtype, std::uint64_t seed, double std = 1.0) {
  RandomStream stream(seed, Purpose::test);
  return random_normal(shape, std, stream, dtype);
}

/// Fills the block that the next tensor of this size takes from the pool with NaN.
inline void poison(std::int64_t count, DType dtype) { Tensor::full({count}, nan, dtype); }

/// Views with the values of x and other strides: dense, last two dimensions swapped in memory, cut out of
/// NaN.
inline std::vector<Tensor> views(const Tensor& x) {
  std::vector<Tensor> result{x};
  if (x.rank() >= 2) result.push_back(x.transpose(-1, -2).clone().transpose(-1, -2));
  if (x.rank() >= 1) {
    Shape larger = x.shape();
    for (int dim = 0; dim < x.rank(); ++dim) larger[dim] = 2 * larger[dim] + 1;
    Tensor cut = Tensor::full(larger, nan, x.dtype());
    for (int dim = 0; dim < x.rank(); ++dim) cut = cut.slice(dim, 1, larger[dim], 2);
    cut.copy_(x);
    result.push_back(cut);
  }
  return result;
}

/// Every element within `tolerance` · max(1, |wanted|); NaN matches NaN and infinities must be equal.
inline void expect_values(const Tensor& got, const std::vector<double>& wanted, double tolerance) {
  const std::vector<double> values = got.to_vector();
  ASSERT_EQ(values.size(), wanted.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(wanted[i])) {
      ASSERT_TRUE(std::isnan(values[i])) << "element " << i << " is " << values[i];
    } else if (std::isinf(wanted[i])) {
      ASSERT_EQ(values[i], wanted[i]) << "element " << i;
    } else {
      ASSERT_LE(std::abs(values[i] - wanted[i]), tolerance * std::max(1.0, std::abs(wanted[i])))
          << "element " << i << " is " << values[i] << ", wanted " << wanted[i];
    }
  }
}

/// f64: rounding of short sums; f32: likewise.
inline double tolerance(DType dtype) { return dtype == DType::f64 ? 1e-13 : 1e-6; }

/// The message of the E that f throws.
template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing of the expected kind was thrown";
  return {};
}

}  // namespace gyre::kernels
