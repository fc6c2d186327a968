#include "core/parallel.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "core/error.h"

namespace gyre {
namespace {

using testing::ThrowsMessage;

class Parallel : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(before_); }
  const int before_ = num_threads();
};

TEST_F(Parallel, VisitsEachIndexOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    EXPECT_EQ(num_threads(), threads);
    for (const std::int64_t count : {0, 1, 2, 6, 7, 100, 1001}) {
      for (const std::int64_t grain : {0, 1, 10, 5000}) {
        std::vector<int> visits(static_cast<std::size_t>(count));
        std::atomic<int> ranges{0};
        parallel_for(5, 5 + count, grain, [&](std::int64_t first, std::int64_t last) {
          ++ranges;
          for (std::int64_t i = first; i < last; ++i) ++visits[static_cast<std::size_t>(i - 5)];
        });
        EXPECT_THAT(visits, testing::Each(1));
        EXPECT_LE(ranges, threads);
        EXPECT_LE(ranges * std::max<std::int64_t>(grain, 1),
                  std::max(count, std::max<std::int64_t>(grain, 1)));
      }
    }
  }
}

TEST_F(Parallel, RangesAreAFunctionOfTheThreadCountAlone) {
  set_num_threads(3);
  const auto ranges = [] {
    std::vector<std::int64_t> starts(3, -1);
    detail::run_tasks(
        3,
        [](void* p, int i) {
          (*static_cast<std::vector<std::int64_t>*>(p))[static_cast<std::size_t>(i)] = i;
        },
        &starts);
    return starts;
  };
  EXPECT_THAT(ranges(), testing::ElementsAre(0, 1, 2));
  std::vector<std::pair<std::int64_t, std::int64_t>> parts(3);
  parallel_for(0, 10, 1, [&](std::int64_t first, std::int64_t last) {
    parts[static_cast<std::size_t>(first / 3)] = {first, last};
  });
  EXPECT_THAT(parts, testing::ElementsAre(testing::Pair(0, 3), testing::Pair(3, 6), testing::Pair(6, 10)));
}

TEST_F(Parallel, TheSameThreadGetsTheSameTaskEveryTime) {
  set_num_threads(4);
  const auto owners = [](std::int64_t tasks) {
    std::vector<std::thread::id> ids(static_cast<std::size_t>(tasks));
    parallel_for(0, tasks, 1, [&](std::int64_t first, std::int64_t) {
      ids[static_cast<std::size_t>(first)] = std::this_thread::get_id();
    });
    return ids;
  };
  const auto first = owners(4);
  EXPECT_EQ(first[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(first.begin(), first.end()).size(), 4u);
  // Loops with fewer tasks must not end threads: pinned ones would lose their core.
  EXPECT_THAT(owners(2), testing::ElementsAre(first[0], first[1]));
  EXPECT_EQ(owners(4), first);
}

TEST_F(Parallel, NestedLoopsRunSerially) {
  set_num_threads(4);
  EXPECT_FALSE(in_parallel());
  std::vector<int> inner_ranges(4);
  std::vector<int> nested(4);
  parallel_for(0, 4, 1, [&](std::int64_t first, std::int64_t) {
    const auto me = static_cast<std::size_t>(first);
    nested[me] = in_parallel();
    const auto id = std::this_thread::get_id();
    parallel_for(0, 100, 1, [&](std::int64_t, std::int64_t) {
      if (std::this_thread::get_id() == id) ++inner_ranges[me];
    });
  });
  EXPECT_THAT(nested, testing::Each(1));
  EXPECT_THAT(inner_ranges, testing::Each(1));
  EXPECT_FALSE(in_parallel());
}

TEST_F(Parallel, SerialScopesNest) {
  set_num_threads(3);
  const auto ranges = [] {
    std::atomic<int> count{0};
    parallel_for(0, 100, 1, [&](std::int64_t, std::int64_t) { ++count; });
    return count.load();
  };
  {
    const SerialScope outer;
    {
      const SerialScope inner;
      EXPECT_EQ(ranges(), 1);
    }
    EXPECT_TRUE(in_parallel());
    EXPECT_EQ(ranges(), 1);
  }
  EXPECT_EQ(ranges(), 3);
}

TEST_F(Parallel, TheFirstExceptionByTaskIsRethrownAfterAllFinish) {
  set_num_threads(4);
  std::atomic<int> finished{0};
  const auto loop = [&] {
    parallel_for(0, 4, 1, [&](std::int64_t first, std::int64_t) {
      if (first == 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the later one throws earlier
      ++finished;
      if (first == 1 || first == 3) throw ValueError(fmt::format("task {}", first));
    });
  };
  EXPECT_THAT(loop, ThrowsMessage<ValueError>("task 1"));
  EXPECT_EQ(finished, 4);
  EXPECT_FALSE(in_parallel());
  EXPECT_THAT(loop, ThrowsMessage<ValueError>("task 1"));  // the threads survive
}

TEST_F(Parallel, SeveralThreadsMayLoopAtTheSameTime) {
  set_num_threads(3);
  std::vector<std::int64_t> sums(4);
  std::vector<std::thread> threads;
  for (std::int64_t& sum : sums) {
    threads.emplace_back([&sum] {
      for (int round = 0; round < 20; ++round) {
        std::vector<std::int64_t> values(1000);
        parallel_for(0, 1000, 1, [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t i = first; i < last; ++i) values[static_cast<std::size_t>(i)] = i;
        });
        sum += std::accumulate(values.begin(), values.end(), std::int64_t{0});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(sums, testing::Each(20 * 499500));
}

TEST_F(Parallel, RefusesFewerThanOneThread) {
  EXPECT_THAT([] { set_num_threads(0); },
              ThrowsMessage<ValueError>("the number of threads must be at least 1, not 0"));
}

std::vector<int> allowed_now() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cpus.push_back(i);
  }
  return cpus;
}

// In child processes: neither pinning nor the environment may leak into other tests.
TEST(ParallelDeathTest, PinningBindsThreadsOneByOneAndCanBeUndone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto child = [] {
    const std::vector<int> all = allowed_now();
    unpin_this_thread();  // without pinning: nothing happens
    bool good = allowed_now() == all;
    set_num_threads(2);
    pin_threads();
    set_num_threads(3);
    std::vector<std::vector<int>> masks(3);
    parallel_for(0, 3, 1, [&](std::int64_t first, std::int64_t) {
      masks[static_cast<std::size_t>(first)] = allowed_now();
    });
    for (std::size_t i = 0; i < 3; ++i) good = good && masks[i] == std::vector<int>{all[i % all.size()]};
    std::thread([&] {
      good = good && allowed_now().size() == 1;  // inherited from the pinned thread
      unpin_this_thread();
      good = good && allowed_now() == all;
    }).join();
    good = good && allowed_now().size() == 1;
    parallel_for(0, 3, 1, [&](std::int64_t first, std::int64_t) {
      try {
        pin_threads();
        if (first == 0) good = false;
      } catch (const Error&) {
      }
    });
    std::_Exit(good ? 0 : 1);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

TEST(ParallelDeathTest, TheEnvironmentSetsTheThreadCount) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto child = [](const char* text, int expected) {
    if (text == nullptr) {
      ::unsetenv("GYRE_NUM_THREADS");
    } else {
      ::setenv("GYRE_NUM_THREADS", text, 1);
    }
    try {
      std::_Exit(num_threads() == expected ? 0 : 1);
    } catch (const ValueError& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(2);
    }
  };
  EXPECT_EXIT(child("5", 5), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(child(nullptr, static_cast<int>(allowed_now().size())), testing::ExitedWithCode(0), "");
  for (const char* bad : {"", "0", "-2", "4x", "1e9", "99999999999"}) {
    EXPECT_EXIT(child(bad, 0), testing::ExitedWithCode(2),
                "GYRE_NUM_THREADS: expected a positive integer, got '" + std::string(bad) + "'");
  }
}

}  // namespace
}  // namespace gyre
