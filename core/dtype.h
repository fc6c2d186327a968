#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/error.h"
#include "core/half.h"

namespace gyre {

enum class DType : std::uint8_t { f64, f32, f16, bf16, i64, u8 };

/// Bytes of one element.
std::size_t size_of(DType dtype);
/// "f64", "f32", "f16", "bf16", "i64", "u8".
std::string_view name_of(DType dtype);
/// Inverse of name_of; throws DTypeError for any other text.
DType parse_dtype(std::string_view name);
bool is_floating(DType dtype);

template <class T>
inline constexpr bool always_false = false;

/// The DType of a C++ type.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, Half>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return DType::u8;
  else
    static_assert(always_false<T>, "no DType for this C++ type");
}

/// Calls `f(T{})` with T = float or double; `what` names the operation in the error for other types.
template <class F>
decltype(auto) dispatch_floating(DType dtype, std::string_view what, F&& f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    default: throw DTypeError(fmt::format("{} takes f32 or f64, not {}", what, name_of(dtype)));
  }
}

}  // namespace gyre

template <>
struct fmt::formatter<gyre::DType> : fmt::formatter<std::string_view> {
  auto format(gyre::DType dtype, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(gyre::name_of(dtype), context);
  }
};
