#pragma once

#include <bit>
#include <cstdint>

namespace gyre {

/// The bits of an IEEE 754 half: sign, 5 bits of exponent, 10 of fraction.
struct Half {
  std::uint16_t bits = 0;

  /// Exact.
  explicit operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t exponent = bits >> 10 & 0x1FU, fraction = bits & 0x3FFU;
    if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
    if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;  // zero or subnormal
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
};

/// The upper half of the bits of a float.
struct BFloat16 {
  std::uint16_t bits = 0;

  /// Exact.
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

}  // namespace gyre
