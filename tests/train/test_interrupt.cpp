#include "train/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace gyre {
namespace {

volatile std::sig_atomic_t outer_calls = 0;
void outer(int) { outer_calls = outer_calls + 1; }

TEST(Interrupt, ASignalRaisesAFlag) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const InterruptScope scope;
    EXPECT_FALSE(scope.requested());
    std::raise(number);
    EXPECT_TRUE(scope.requested());
  }
  const InterruptScope next;
  EXPECT_FALSE(next.requested());
}

TEST(Interrupt, ThePreviousHandlersComeBack) {
  for (const int number : {SIGINT, SIGTERM}) {
    outer_calls = 0;
    const auto before = std::signal(number, outer);
    {
      const InterruptScope scope;
      std::raise(number);
      EXPECT_EQ(outer_calls, 0);
    }
    std::raise(number);
    EXPECT_EQ(outer_calls, 1);
    std::signal(number, before);
  }
}

TEST(InterruptDeathTest, ASecondSignalEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto twice = [](int first, int second) {
    const InterruptScope scope;
    std::raise(first);
    std::raise(second);
    std::_Exit(0);
  };
  EXPECT_EXIT(twice(SIGINT, SIGINT), testing::ExitedWithCode(130), "");
  EXPECT_EXIT(twice(SIGTERM, SIGINT), testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace gyre
