#pragma once

#include <bit>
#include <cstdint>

namespace gyre {

/// The bits of an IEEE 754 half: sign, 5 bits of exponent, 10 of fraction.
struct Half {
  std::uint16_t bits = 0;

  /// Nearest, ties to even; too large ones become infinite; a NaN becomes 0x7FFF, as on NVIDIA devices.
  static Half nearest(float value) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(value), magnitude = word & 0x7FFFFFFFU;
    std::uint32_t half = 0;
    if (magnitude > 0x7F800000U) return {0x7FFF};
    if (magnitude >= 0x477FF000U) {  // half way from 65504 to the next
      half = 0x7C00U;
    } else if (magnitude < 0x38800000U) {
      // Subnormal: the last place of this sum is that of a half.
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
    } else {
      half = (magnitude - 0x38000000U + 0xFFFU + (magnitude >> 13 & 1U)) >> 13;
    }
    return {static_cast<std::uint16_t>((word >> 16 & 0x8000U) | half)};
  }

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

  /// Nearest, ties to even; a NaN becomes 0x7FFF.
  static BFloat16 nearest(float value) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7FFFFFFFU) > 0x7F800000U) return {0x7FFF};
    return {static_cast<std::uint16_t>((word + 0x7FFFU + (word >> 16 & 1U)) >> 16)};
  }

  /// Exact.
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

}  // namespace gyre
