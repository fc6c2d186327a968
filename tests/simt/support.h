#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <type_traits>
#include <vector>

// The tests run on the emulator and, as they are, on a GPU.
#ifdef GYRE_TEST_GPU
#include "tests/simt/gpu/buffer.h"
#else
#include "tests/simt/buffer.h"
#endif

namespace gyre::simt {

/// n fresh numbers, uniform in [low, high); whole ones for integers.
template <class T>
std::vector<T> random(std::size_t n, unsigned seed, double low = -1, double high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> distribution(low, high);
  std::vector<T> result(n);
  for (T& value : result)
    value =
        static_cast<T>(std::is_integral_v<T> ? std::floor(distribution(generator)) : distribution(generator));
  return result;
}

}  // namespace gyre::simt
