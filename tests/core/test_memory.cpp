#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"

// Sanitizers would end the process where an allocator has to report failure.
#ifdef __SANITIZE_ADDRESS__
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#endif
#ifdef __SANITIZE_THREAD__
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
#endif

namespace gyre {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class Memory : public testing::Test {
 protected:
  void SetUp() override { release_cached_memory(); }
};

TEST_F(Memory, FreedBlocksServeTheNextRequestOfTheirSize) {
  void* const first = pool_allocate(100000);
  const MemoryStats during = memory_stats();
  pool_free(first, 100000);
  const MemoryStats freed = memory_stats();
  EXPECT_LT(freed.active, during.active);
  EXPECT_EQ(freed.cached - during.cached, during.active - freed.active);
  void* const second = pool_allocate(100000);
  EXPECT_EQ(second, first);
  EXPECT_EQ(memory_stats().allocations, during.allocations);
  EXPECT_EQ(memory_stats().cached, during.cached);
  pool_free(second, 100000);
  release_cached_memory();
  EXPECT_EQ(memory_stats().cached, 0u);
}

TEST_F(Memory, SizeClassesWasteAtMostAnEighth) {
  for (std::size_t bytes = 1; bytes < 40'000'000; bytes += 1 + bytes / 7) {
    const std::size_t before = memory_stats().active;
    void* const data = pool_allocate(bytes);
    const std::size_t used = memory_stats().active - before;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
    EXPECT_GE(used, bytes);
    EXPECT_LE(used, std::max<std::size_t>(bytes + bytes / 8, (bytes + 63) / 64 * 64)) << bytes;
    std::memset(data, 0xff, bytes > 4096 ? 4096 : bytes);
    pool_free(data, bytes);
    EXPECT_EQ(memory_stats().active, before);
  }
}

TEST_F(Memory, PeakCountsUntilItIsReset) {
  reset_peak_memory();
  const std::size_t base = memory_stats().active;
  EXPECT_EQ(memory_stats().peak, base);
  {
    const Tensor a = Tensor::empty({1 << 18});
    const Tensor b = Tensor::empty({1 << 18});
  }
  const Tensor c = Tensor::empty({1 << 10});
  EXPECT_EQ(memory_stats().peak, base + (2u << 20));
  EXPECT_EQ(memory_stats().active, base + (4u << 10));
  reset_peak_memory();
  EXPECT_EQ(memory_stats().peak, memory_stats().active);
}

TEST_F(Memory, NothingIsAllocatedForNoBytes) {
  const MemoryStats before = memory_stats();
  pool_free(pool_allocate(0), 0);
  EXPECT_EQ(memory_stats().allocations, before.allocations);
  EXPECT_EQ(memory_stats().active, before.active);
}

TEST_F(Memory, SteadyUseAllocatesNothingFromTheSystem) {
  const auto step = [] {
    Tensor x = Tensor::zeros({64, 100});
    for (int i = 0; i < 5; ++i) x = x.transpose(0, 1).contiguous();
  };
  step();
  const std::size_t warm = memory_stats().allocations;
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(memory_stats().allocations, warm);
}

TEST_F(Memory, FailureEmptiesTheCacheAndNamesTheBytes) {
  pool_free(pool_allocate(1 << 20), 1 << 20);
  EXPECT_GT(memory_stats().cached, 0u);
  const std::size_t active = memory_stats().active;
  const std::size_t huge = std::size_t{1} << 60;  // beyond any address space
  EXPECT_THAT([&] { pool_allocate(huge); },
              ThrowsMessage<Error>(HasSubstr("cannot allocate 1152921504606846976 bytes of host memory")));
  EXPECT_EQ(memory_stats().cached, 0u);
  EXPECT_EQ(memory_stats().active, active);
  EXPECT_THROW(pool_allocate(~std::size_t{0}), Error);
  EXPECT_THAT([] { Tensor::empty({std::int64_t{1} << 58}); },
              ThrowsMessage<Error>(HasSubstr("cannot allocate 1152921504606846976 bytes")));
}

TEST_F(Memory, ThreadsShareThePool) {
  const std::size_t before = memory_stats().active;
  std::array<bool, 4> intact{};
  std::vector<std::thread> threads;
  for (std::size_t id = 0; id < intact.size(); ++id) {
    threads.emplace_back([id, &intact] {
      bool good = true;
      for (std::size_t round = 0; round < 300; ++round) {
        const std::size_t bytes = 64 + 256 * ((round + id) % 5);
        auto* data = static_cast<unsigned char*>(pool_allocate(bytes));
        std::memset(data, static_cast<int>(id), bytes);
        std::this_thread::yield();
        for (std::size_t i = 0; i < bytes; ++i) good &= data[i] == id;
        pool_free(data, bytes);
      }
      intact[id] = good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(intact, testing::Each(true));
  EXPECT_EQ(memory_stats().active, before);
}

TEST_F(Memory, ResidentMemoryFollowsUse) {
  constexpr std::size_t bytes = 64u << 20;
  const double before = resident_mb();
  EXPECT_GT(before, 1);
  void* const data = pool_allocate(bytes);
  std::memset(data, 1, bytes);
  const double during = resident_mb();
  EXPECT_GT(during, before + 50);
  EXPECT_GE(peak_resident_mb(), during - 1);
  pool_free(data, bytes);
  release_cached_memory();
#ifndef __SANITIZE_ADDRESS__  // its quarantine keeps freed memory
  EXPECT_LT(resident_mb(), during - 50);
#endif
}

}  // namespace
}  // namespace gyre
