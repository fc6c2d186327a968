#include "core/profile.h"

#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "core/error.h"

namespace gyre {
namespace {

void work(const char* name, int milliseconds) {
  const ProfileScope scope(name);
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(Profile, CountsCallsAndTimeLongestFirst) {
  work("before", 1);
  const Profile profile;
  work("short", 1);
  work("long", 20);
  work("short", 1);
  const auto entries = profile.entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "long");
  EXPECT_EQ(entries[0].calls, 1);
  EXPECT_GE(entries[0].seconds, 0.020);
  EXPECT_EQ(entries[1].name, "short");
  EXPECT_EQ(entries[1].calls, 2);
  EXPECT_GE(entries[1].seconds, 0.002);
  EXPECT_GE(profile.seconds(), entries[0].seconds + entries[1].seconds);
}

TEST(Profile, GivesInnerOperationsToTheOuterOne) {
  const Profile profile;
  {
    const ProfileScope outer("outer");
    work("inner", 2);
  }
  work("inner", 1);
  const auto entries = profile.entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "outer");
  EXPECT_GE(entries[0].seconds, 0.002);
  EXPECT_EQ(entries[1].calls, 1);
}

TEST(Profile, IsOfOneThreadAndEndsWithItself) {
  {
    const Profile profile;
    std::thread([] { work("elsewhere", 1); }).join();
    EXPECT_TRUE(profile.entries().empty());
    EXPECT_THROW(Profile(), Error);
  }
  const Profile next;
  EXPECT_TRUE(next.entries().empty());
  work("now", 1);
  EXPECT_EQ(next.entries().size(), 1u);
}

TEST(Profile, AnOperationMayOutliveIt) {
  auto profile = std::make_unique<Profile>();
  {
    const ProfileScope scope("cut short");
    profile.reset();
  }
  const Profile next;
  work("whole", 1);
  EXPECT_EQ(next.entries().size(), 1u);
}

}  // namespace
}  // namespace gyre
