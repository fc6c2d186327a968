#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace gyre {

/// Philox 4x32-10 (Salmon et al., SC 2011): four random words from a counter and a key, no state.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// What a random number is for; streams of different purposes are independent.
enum class Purpose : std::uint32_t { init, shuffle, augment, mixup, drop_path, dropout, split, test };

/// Random numbers addressed by (seed, purpose, a, b): the same address gives the same stream anywhere.
/// Two Philox calls, keyed by the seed and by the purpose, turn (a, b) into a 128-bit identity; block i of
/// the stream is Philox of the counter (i, first half) under the key (second half). Streams of one seed and
/// purpose never overlap, since each call is a bijection; across seeds and purposes two identities agree with
/// probability 2⁻¹²⁸. Up to 2⁶⁶ words each.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t a = 0, std::uint64_t b = 0);

  std::uint32_t bits();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in [low, high); `low` if both are equal. Throws ValueError unless low ≤ high.
  double uniform(double low, double high);
  /// Uniform in {0, …, n-1}, without modulo bias; throws ValueError for n = 0.
  std::uint64_t below(std::uint64_t n);
  /// Standard normal (Box–Muller).
  double normal();
  /// Normal(0, std) cut off at ±2 std by redrawing.
  double truncated_normal(double std);
  /// A permutation of 0..n-1 (Fisher–Yates), all equally likely.
  std::vector<std::int64_t> permutation(std::int64_t n);

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
  double spare_ = 0;
  bool has_spare_ = false;
};

/// Dense f32 or f64 tensors of random values drawn in row-major order; both types see the same draws.
Tensor random_uniform(const Shape& shape, double low, double high, RandomStream& stream,
                      DType dtype = DType::f32);
Tensor random_normal(const Shape& shape, double std, RandomStream& stream, DType dtype = DType::f32);
Tensor random_truncated_normal(const Shape& shape, double std, RandomStream& stream,
                               DType dtype = DType::f32);

}  // namespace gyre
