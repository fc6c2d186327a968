#include "core/random.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace gyre {

namespace {

// High key word of the round that mixes the purpose in.
constexpr std::uint32_t purpose_salt = 0x67797265;

std::uint32_t low_word(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
std::uint32_t high_word(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

std::uint64_t bits64(RandomStream& stream) {
  const std::uint64_t high = stream.bits();
  return high << 32 | stream.bits();
}

template <class Draw>
Tensor fill_random(const Shape& shape, DType dtype, const char* what, Draw&& draw) {
  return dispatch_floating(dtype, what, [&](auto zero) {
    using T = decltype(zero);
    Tensor result = Tensor::empty(shape, dtype);
    const std::int64_t count = result.numel();
    T* values = count > 0 ? result.mutable_data<T>() : nullptr;
    for (std::int64_t i = 0; i < count; ++i) values[i] = draw(zero);
    return result;
  });
}

// The largest T below `high`: rounding must not reach the open end.
template <class T>
T last_below(double high) {
  const T rounded = static_cast<T>(high);
  return rounded < high ? rounded : std::nextafter(rounded, -std::numeric_limits<T>::infinity());
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  auto& [c0, c1, c2, c3] = counter;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c2;
    counter = {high_word(p1) ^ c1 ^ key[0], low_word(p1), high_word(p0) ^ c3 ^ key[1], low_word(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

RandomStream::RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t a, std::uint64_t b) {
  // Philox is a bijection of its counter, so distinct (a, b) never share a stream identity under one seed and
  // purpose.
  auto identity =
      philox({low_word(a), high_word(a), low_word(b), high_word(b)}, {low_word(seed), high_word(seed)});
  identity = philox(identity, {static_cast<std::uint32_t>(purpose), purpose_salt});
  counter_ = {0, 0, identity[0], identity[1]};
  key_ = {identity[2], identity[3]};
}

std::uint32_t RandomStream::bits() {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

double RandomStream::uniform() { return static_cast<double>(bits64(*this) >> 11) * 0x1p-53; }

double RandomStream::uniform(double low, double high) {
  require<ValueError>(low <= high && std::isfinite(high - low),
                      "uniform range [{}, {}) is not a finite interval", low, high);
  const double value = low + (high - low) * uniform();
  return low < high ? std::min(value, last_below<double>(high)) : low;
}

std::uint64_t RandomStream::below(std::uint64_t n) {
  require<ValueError>(n > 0, "below(0) has no value to draw");
  const std::uint64_t excess = (0 - n) % n;  // 2⁶⁴ mod n draws too many for equal shares
  for (;;) {
    const std::uint64_t draw = bits64(*this);
    if (draw >= excess) return draw % n;
  }
}

double RandomStream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  const double angle = 2 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

double RandomStream::truncated_normal(double std) {
  for (;;) {
    const double z = normal();
    if (std::abs(z) <= 2) return std * z;
  }
}

std::vector<std::int64_t> RandomStream::permutation(std::int64_t n) {
  require<ValueError>(n >= 0, "permutation of {} elements", n);
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(i)]);  // Fisher–Yates
  return order;
}

Tensor random_uniform(const Shape& shape, double low, double high, RandomStream& stream, DType dtype) {
  return fill_random(shape, dtype, "random_uniform", [&](auto zero) {
    using T = decltype(zero);
    const T value = static_cast<T>(stream.uniform(low, high));
    return low < high ? std::min(value, last_below<T>(high)) : value;
  });
}

Tensor random_normal(const Shape& shape, double std, RandomStream& stream, DType dtype) {
  return fill_random(shape, dtype, "random_normal",
                     [&](auto zero) { return static_cast<decltype(zero)>(std * stream.normal()); });
}

Tensor random_truncated_normal(const Shape& shape, double std, RandomStream& stream, DType dtype) {
  return fill_random(shape, dtype, "random_truncated_normal",
                     [&](auto zero) { return static_cast<decltype(zero)>(stream.truncated_normal(std)); });
}

}  // namespace gyre
