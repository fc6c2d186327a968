#pragma once

#include <charconv>
#include <concepts>
#include <limits>
#include <string>
#include <string_view>

#include "core/error.h"

namespace gyre {

/// Legal values of a number; the ends belong to it unless marked open.
template <class T>
struct Range {
  T low = std::numeric_limits<T>::lowest();
  T high = std::numeric_limits<T>::max();
  bool open_low = false, open_high = false;

  bool contains(T value) const {
    return (open_low ? value > low : value >= low) && (open_high ? value < high : value <= high);
  }
  /// "[1, 65536]", "[0, 1)".
  std::string str() const {
    return fmt::format("{}{}, {}{}", open_low ? '(' : '[', low, high, open_high ? ')' : ']');
  }
};

/// The text of a whole number or a decimal fraction ("1e-4", "1.0e-4", ".0001"), whatever the locale.
/// ValueError "'x' is not a whole number", "'x' is not a number" or "0 is out of range [1, 65536]".
template <class T>
requires std::integral<T> || std::floating_point<T> T parse_number(std::string_view text,
                                                                   const Range<T>& range = {}) {
  T value{};
  const bool plus = text.starts_with('+') && !text.starts_with("+-");
  const std::string_view digits = plus ? text.substr(1) : text;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = end == digits.data() + digits.size() && !digits.empty();
  if constexpr (std::integral<T>) {
    // "-1" for an unsigned type is a number out of range, not a wrong word.
    const bool negative = std::unsigned_integral<T> && digits.size() > 1 && digits.front() == '-' &&
                          digits.find_first_not_of("0123456789", 1) == std::string_view::npos;
    require<ValueError>(whole || negative, "'{}' is not a whole number", text);
    require<ValueError>(code == std::errc() && range.contains(value), "{} is out of range {}", text,
                        range.str());
  } else {
    const bool finite = value - value == T{};
    require<ValueError>(whole && finite, "'{}' is not a number", text);
    require<ValueError>(code == std::errc() && range.contains(value), "{} is out of range {}", text,
                        range.str());
  }
  return value;
}

/// "true", "false", "yes", "no", "on", "off" (YAML 1.1); ValueError for other texts.
bool parse_bool(std::string_view text);

}  // namespace gyre
