#pragma once

#include <locale>
#include <string>

namespace gyre {

/// Sets a global C++ locale that writes 1234.5 as "1.234,5" while alive.
class DecimalComma {
 public:
  DecimalComma() : previous_(std::locale::global(std::locale(std::locale::classic(), new Punctuation))) {}
  ~DecimalComma() { std::locale::global(previous_); }
  DecimalComma(const DecimalComma&) = delete;
  DecimalComma& operator=(const DecimalComma&) = delete;

 private:
  struct Punctuation : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale previous_;
};

}  // namespace gyre
