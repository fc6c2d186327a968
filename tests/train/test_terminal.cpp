#include "train/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/train/decimal_comma.h"

namespace gyre {
namespace {

TEST(Terminal, NumbersHaveCommas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(-123), "-123");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
}

TEST(Terminal, SizesHaveUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(12'345'678), "12.3 MB");
  EXPECT_EQ(format_bytes(999'600), "1.00 MB");
  EXPECT_EQ(format_si(1'234'567), "1.23M");
  EXPECT_EQ(format_si(512), "512");
  EXPECT_EQ(format_si(99.96), "100");
  const DecimalComma locale;
  EXPECT_EQ(format_bytes(1'500), "1.50 kB");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
}

TEST(Terminal, DurationsHaveUnits) {
  EXPECT_EQ(format_duration(0.42), "0.4s");
  EXPECT_EQ(format_duration(9.94), "9.9s");
  EXPECT_EQ(format_duration(9.96), "10s");
  EXPECT_EQ(format_duration(59.7), "1m00s");
  EXPECT_EQ(format_duration(185), "3m05s");
  EXPECT_EQ(format_duration(3599.6), "1h00m");
  EXPECT_EQ(format_duration(3725), "1h02m");
  EXPECT_EQ(format_duration(86399), "1d00h");
  EXPECT_EQ(format_duration(2 * 86400 + 3 * 3600), "2d03h");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "?");
}

TEST(Terminal, BarFitsTheWidth) {
  EXPECT_EQ(progress_bar("epoch 1", 0.5, "loss 2.1", 80),
            "epoch 1 [###############...............]  50% loss 2.1");
  for (int width = 1; width < 120; ++width) {
    for (const double fraction : {-1.0, 0.0, 0.37, 1.0, 7.0, std::numeric_limits<double>::quiet_NaN()}) {
      EXPECT_LE(progress_bar("epoch 12/30", fraction, "1,234 images/s", width).size(),
                static_cast<std::size_t>(width));
    }
  }
}

TEST(Terminal, ProgressIsSilentInAFile) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    ProgressLine line(file);
    EXPECT_FALSE(line.active());
    line.update("x", 0.5, "y");
  }
  EXPECT_EQ(std::ftell(file), 0);
  EXPECT_FALSE(is_terminal(file));
  EXPECT_EQ(terminal_width(file), 80);
  std::fclose(file);
}

TEST(Terminal, ProgressRedrawsOneLineOnATerminal) {
  setenv("TERM", "xterm", 1);
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0) GTEST_SKIP() << "no pseudo-terminals here: /dev/pts is not mounted";
  ASSERT_EQ(grantpt(master) | unlockpt(master), 0);
  std::FILE* file = std::fopen(ptsname(master), "w");
  ASSERT_NE(file, nullptr);
  {
    ProgressLine line(file);
    EXPECT_TRUE(line.active());
    line.update("epoch", 0.25, "first");
    line.update("epoch", 0.50, "at once");  // too soon to redraw
  }
  char buffer[512] = {};
  const ssize_t count = read(master, buffer, sizeof buffer - 1);
  const std::string text(buffer, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  EXPECT_EQ(text, fmt::format("\r{}\033[K\r\033[K", progress_bar("epoch", 0.25, "first", 79)));
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(is_terminal(file));
  std::fclose(file);
  close(master);
}

}  // namespace
}  // namespace gyre
