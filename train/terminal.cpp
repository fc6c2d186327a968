#include "train/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace gyre {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Three significant digits and the prefix of a power of 1000.
std::string with_prefix(double value, std::string_view after_prefix, std::string_view between) {
  constexpr std::array<std::string_view, 6> prefixes{"", "k", "M", "G", "T", "P"};
  std::size_t power = 0;
  // 999.5 rounds to 1000, which belongs to the next prefix.
  while (std::abs(value) >= 999.5 && power + 1 < prefixes.size()) {
    value /= 1000;
    ++power;
  }
  const double size = std::abs(value);
  const bool whole = power == 0 && value == std::floor(value);
  const int decimals = whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}{}{}", value, decimals, between, prefixes[power], after_prefix);
}

}  // namespace

bool is_terminal(std::FILE* file) {
  const char* term = std::getenv("TERM");
  return isatty(fileno(file)) == 1 && !(term && std::string_view(term) == "dumb");
}

int terminal_width(std::FILE* file) {
  winsize size{};
  return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string with_commas(std::int64_t value) {
  std::string text = fmt::format("{}", value);
  const std::ptrdiff_t sign = value < 0 ? 1 : 0;
  for (auto i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > sign; i -= 3)
    text.insert(text.begin() + i, ',');
  return text;
}

std::string format_bytes(double bytes) { return with_prefix(bytes, "B", " "); }

std::string format_si(double value) { return with_prefix(value, "", ""); }

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 9.95) return fmt::format("{:.1f}s", seconds);
  const auto s = static_cast<std::int64_t>(std::llround(seconds));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  const std::int64_t m = (s + 30) / 60;
  if (m < 24 * 60) return fmt::format("{}h{:02}m", m / 60, m % 60);
  const std::int64_t h = (m + 30) / 60;
  return fmt::format("{}d{:02}h", h / 24, h % 24);
}

std::string progress_bar(std::string_view label, double fraction, std::string_view detail, int width) {
  fraction = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0;
  const auto columns = static_cast<std::size_t>(std::max(width, 1));
  const std::string percent = fmt::format("{:3}%", static_cast<int>(100 * fraction));
  const std::size_t fixed = label.size() + percent.size() + detail.size() + 5;
  std::string line;
  if (fixed + 10 <= columns) {
    const std::size_t bar = std::min<std::size_t>(30, columns - fixed);
    const auto full = static_cast<std::size_t>(fraction * static_cast<double>(bar));
    line = fmt::format("{} [{}{}] {} {}", label, std::string(full, '#'), std::string(bar - full, '.'),
                       percent, detail);
  } else {
    line = fmt::format("{} {} {}", label, percent, detail);
  }
  if (line.size() > columns) line.resize(columns);
  return line;
}

ProgressLine::ProgressLine(std::FILE* file, bool enabled)
    : file_(file), active_(enabled && is_terminal(file)) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::update(std::string_view label, double fraction, std::string_view detail) {
  const double now = now_seconds();
  if (!active_ || (drawn_ && now - last_ < 0.1)) return;
  // One column stays free: a full line would wrap.
  fmt::print(file_, "\r{}\033[K", progress_bar(label, fraction, detail, terminal_width(file_) - 1));
  std::fflush(file_);
  drawn_ = true;
  last_ = now;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  fmt::print(file_, "\r\033[K");
  std::fflush(file_);
  drawn_ = false;
}

}  // namespace gyre
