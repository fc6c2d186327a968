#pragma once

// 16-bit numbers are raw storage: kernels load them, compute in f32 and store them.

#include <cstdint>

#include "core/cuda/prim_launch.cuh"

namespace gyre::prim {

/// IEEE 754 half.
struct half_t {
  std::uint16_t bits;
};

/// The upper half of a float.
struct bf16_t {
  std::uint16_t bits;
};

/// The type that sums of T are kept in: double for double, float for everything narrower.
template <class T>
struct WideOf {
  using type = float;
};
template <>
struct WideOf<double> {
  using type = double;
};
template <class T>
using Wide = typename WideOf<T>::type;

template <class To, class From>
GYRE_HOST_DEVICE To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

/// Exact.
GYRE_DEVICE float to_float(half_t h) {
#ifdef __CUDACC__
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
  return f;
#else
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000U) << 16;
  const std::uint32_t exponent = h.bits >> 10 & 0x1FU, fraction = h.bits & 0x3FFU;
  if (exponent == 0x1F) return bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  if (exponent != 0) return bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) / 16777216.0F;  // zero or subnormal
  return bit_cast<float>(sign | bit_cast<std::uint32_t>(magnitude));
#endif
}

/// Exact.
GYRE_DEVICE float to_float(bf16_t b) { return bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16); }
GYRE_DEVICE float to_float(float f) { return f; }

/// Rounds to nearest, ties to even; beyond the range to infinity.
GYRE_DEVICE half_t to_half(float f) {
#ifdef __CUDACC__
  half_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
  return h;
#else
  const std::uint32_t bits = bit_cast<std::uint32_t>(f), magnitude = bits & 0x7FFFFFFFU;
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const auto with = [sign](std::uint32_t rest) { return half_t{static_cast<std::uint16_t>(sign | rest)}; };
  if (magnitude > 0x7F800000U) return half_t{0x7FFF};  // NaN, as cvt writes it
  if (magnitude >= 0x477FF000U) return with(0x7C00U);  // 65520 and more
  if (magnitude < 0x38800000U)                         // below 2^-14: multiples of 2^-24
    return with(static_cast<std::uint32_t>(std::nearbyint(bit_cast<float>(magnitude) * 16777216.0F)));
  return with((magnitude - 0x38000000U + 0xFFFU + (magnitude >> 13 & 1U)) >> 13);
#endif
}

/// Rounds to nearest, ties to even.
GYRE_DEVICE bf16_t to_bf16(float f) {
#ifdef __CUDACC__
  bf16_t b;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b.bits) : "f"(f));
  return b;
#else
  const std::uint32_t bits = bit_cast<std::uint32_t>(f);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return bf16_t{0x7FFF};  // NaN, as cvt writes it
  return bf16_t{static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16)};
#endif
}

/// Rounds to the 10 bits of fraction that tf32 products read: to nearest, ties away from zero.
GYRE_DEVICE std::uint32_t to_tf32(float f) {
#ifdef __CUDACC__
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(f));
  return bits;
#else
  const std::uint32_t bits = bit_cast<std::uint32_t>(f);
  if ((bits & 0x7F800000U) == 0x7F800000U) return bits;  // infinities and NaN
  return (bits + 0x1000U) & ~0x1FFFU;
#endif
}

/// T into the type that its sums are kept in; exact.
GYRE_DEVICE float widen(half_t h) { return to_float(h); }
GYRE_DEVICE float widen(bf16_t b) { return to_float(b); }
GYRE_DEVICE float widen(float f) { return f; }
GYRE_DEVICE double widen(double d) { return d; }

/// A sum into T, rounded once.
template <class T>
GYRE_DEVICE T from_float(Wide<T> value);
template <>
GYRE_DEVICE half_t from_float<half_t>(float value) {
  return to_half(value);
}
template <>
GYRE_DEVICE bf16_t from_float<bf16_t>(float value) {
  return to_bf16(value);
}
template <>
GYRE_DEVICE float from_float<float>(float value) {
  return value;
}
template <>
GYRE_DEVICE double from_float<double>(double value) {
  return value;
}

/// Two 16-bit numbers in a register, `low` at the lower address.
template <class T>
GYRE_DEVICE std::uint32_t pack2(T low, T high) {
  static_assert(sizeof(T) == 2);
  return static_cast<std::uint32_t>(low.bits) | static_cast<std::uint32_t>(high.bits) << 16;
}

}  // namespace gyre::prim
