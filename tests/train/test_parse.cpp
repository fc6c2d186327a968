#include "train/parse.h"

#include <gtest/gtest.h>

#include "tests/train/decimal_comma.h"
#include "train/config.h"

namespace gyre {
namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ParseNumber, SpellingsOfOneNumberAreEqual) {
  for (const char* text : {"1e-4", "1.0e-4", ".0001", "0.0001", "1E-4", "+1e-4", "1e-04"}) {
    EXPECT_EQ(parse_number<double>(text), 1e-4) << text;
  }
  EXPECT_EQ(parse_number<double>("3"), 3.0);
  EXPECT_EQ(parse_number<double>("-0.5"), -0.5);
  EXPECT_EQ(parse_number<int>("+12"), 12);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), 18446744073709551615ULL);
}

TEST(ParseNumber, IgnoresTheLocale) {
  const DecimalComma locale;
  EXPECT_EQ(parse_number<double>("0.5"), 0.5);
  EXPECT_EQ(parse_number<int>("1234567"), 1234567);
  EXPECT_EQ(error_of([] { parse_number<double>("0,5"); }), "'0,5' is not a number");
}

TEST(ParseNumber, RefusesOtherTexts) {
  for (const char* text :
       {"", " 1", "1 ", "1x", "abc", "0x10", "1_000", "1,000", "++1", "+-1", "nan", "inf", "-inf", "--1"}) {
    EXPECT_EQ(error_of([&] { parse_number<double>(text); }), fmt::format("'{}' is not a number", text));
  }
  for (const char* text : {"", "1.0", "1e3", "ten", "1 ", "-", "+", "0x1"}) {
    EXPECT_EQ(error_of([&] { parse_number<int>(text); }), fmt::format("'{}' is not a whole number", text));
    EXPECT_EQ(error_of([&] { parse_number<std::uint64_t>(text); }),
              fmt::format("'{}' is not a whole number", text));
  }
}

TEST(ParseNumber, ChecksTheRange) {
  const Range<int> range{1, 65536};
  EXPECT_EQ(parse_number<int>("1", range), 1);
  EXPECT_EQ(parse_number<int>("65536", range), 65536);
  EXPECT_EQ(error_of([&] { parse_number<int>("0", range); }), "0 is out of range [1, 65536]");
  EXPECT_EQ(error_of([&] { parse_number<int>("99999999999", range); }),
            "99999999999 is out of range [1, 65536]");
  EXPECT_EQ(error_of([&] { parse_number<std::uint64_t>("-3"); }),
            "-3 is out of range [0, 18446744073709551615]");
  const Range<double> open{.low = 0, .high = 1, .open_low = true, .open_high = true};
  EXPECT_EQ(parse_number<double>("0.5", open), 0.5);
  EXPECT_EQ(error_of([&] { parse_number<double>("0", open); }), "0 is out of range (0, 1)");
  EXPECT_EQ(error_of([&] { parse_number<double>("1.0", open); }), "1.0 is out of range (0, 1)");
  EXPECT_EQ(error_of([&] { parse_number<double>("1e999"); }),
            fmt::format("1e999 is out of range {}", Range<double>{}.str()));
}

TEST(ParseBool, KnowsTheWordsOfYaml) {
  for (const char* text : {"true", "True", "YES", "on"}) EXPECT_TRUE(parse_bool(text)) << text;
  for (const char* text : {"false", "FALSE", "no", "Off"}) EXPECT_FALSE(parse_bool(text)) << text;
  EXPECT_EQ(error_of([] { parse_bool("1"); }), "'1' is not true or false");
}

TEST(ParseDuration, AddsItsParts) {
  EXPECT_EQ(parse_duration("90s"), 90);
  EXPECT_EQ(parse_duration("4m"), 240);
  EXPECT_EQ(parse_duration("1h30m"), 5400);
  EXPECT_EQ(parse_duration("0.5h"), 1800);
  EXPECT_EQ(parse_duration("1d1h1m1s"), 90061);
  for (const char* text : {"", "90", "m", "4 m", "1m1h", "1h1h", "0s", "-4m", "4x", "1.2.3s", "4m5"}) {
    EXPECT_EQ(error_of([&] { parse_duration(text); }),
              fmt::format("'{}' is not a duration such as 90s, 4m or 1h30m", text));
  }
}

}  // namespace
}  // namespace gyre
