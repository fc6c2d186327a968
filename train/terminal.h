#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace gyre {

/// True if `file` is a terminal that redraws lines (TERM is not "dumb").
bool is_terminal(std::FILE* file);
/// Columns of the terminal behind `file`; 80 if unknown.
int terminal_width(std::FILE* file);

// Numbers for people.

/// "1,234,567".
std::string with_commas(std::int64_t value);
/// "12.3 MB": powers of 1000, three digits.
std::string format_bytes(double bytes);
/// "0.4s", "12s", "3m05s", "1h02m", "2d03h".
std::string format_duration(double seconds);
/// Three significant digits with k, M, G, T: "1.23M", "512".
std::string format_si(double value);

/// One line that is redrawn in place on a terminal and is silent elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(std::FILE* file = stderr, bool enabled = true);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool active() const { return active_; }
  /// "label [#####.....] 45% detail", cut to the width; at most ten redraws per second.
  void update(std::string_view label, double fraction, std::string_view detail);
  /// Removes the line, so that other output can follow.
  void clear();

 private:
  std::FILE* file_;
  bool active_;
  bool drawn_ = false;
  double last_ = 0;
};

/// The bar of ProgressLine as text of at most `width` columns.
std::string progress_bar(std::string_view label, double fraction, std::string_view detail, int width);

}  // namespace gyre
