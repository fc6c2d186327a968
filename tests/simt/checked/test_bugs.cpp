#include <gmock/gmock.h>

#include <algorithm>

#include "tests/simt/checked/bugs.h"
#include "tests/simt/support.h"

namespace gyre::simt {
namespace {

using bugs::Bug;
using testing::HasSubstr;
using testing::MatchesRegex;

struct Case {
  Bug bug;
  Rule rule;
  const char* text;  // in the report
  float (*wanted)(const std::vector<float>& x, std::size_t i);
};

std::size_t mirrored(std::size_t i) { return i / 64 * 64 + 63 - i % 64; }
float mirror(const std::vector<float>& x, std::size_t i) { return x[mirrored(i)]; }
float twice_mirror(const std::vector<float>& x, std::size_t i) { return 2 * x[mirrored(i)]; }
float same(const std::vector<float>& x, std::size_t i) { return x[i]; }
float lane_mirror(const std::vector<float>& x, std::size_t i) { return x[i ^ 31U]; }
float neighbour(const std::vector<float>& x, std::size_t i) { return x[i ^ 1U]; }
float sum_of_blocks(const std::vector<float>& x, std::size_t i) { return i < 64 ? x[i] + x[i + 64] : 0.0F; }
float twice_pairs(const std::vector<float>& x, std::size_t i) {
  const std::size_t pair = i / 64 * 64 + i % 64 * 2;
  return i % 64 < 32 ? 2 * (x[pair] + x[pair + 1]) : 0.0F;
}
float warp_sums(const std::vector<float>& x, std::size_t i) {
  if (i % 64 >= 2) return 0;
  float sum = 0;
  for (std::size_t j = 0; j < 32; ++j) sum += x[i / 64 * 64 + i % 64 * 32 + j];
  return sum;
}

const Case cases_of_bugs[] = {
    {Bug::missing_barrier, Rule::race, "of shared memory in bugs.cu:", mirror},
    {Bug::missing_barrier_of_loop, Rule::race, "of shared memory in bugs.cu:", mirror},
    {Bug::missing_warp_barrier, Rule::race, "of shared memory in bugs.cu:", lane_mirror},
    {Bug::missing_wait, Rule::unfinished_copy, "where a copy begun at bugs.cu:", twice_mirror},
    {Bug::wait_too_weak, Rule::unfinished_copy, "where a copy begun at bugs.cu:", twice_mirror},
    {Bug::missing_commit, Rule::unfinished_copy, "where a copy begun at bugs.cu:", twice_mirror},
    {Bug::missing_barrier_after_wait, Rule::race, "of shared memory in bugs.cu:", twice_mirror},
    {Bug::copy_never_waited_for, Rule::outstanding_copy, "returns before it waits", same},
    {Bug::global_write_off_by_one, Rule::out_of_bounds, "writes 4 bytes at byte 512 of a buffer of 512",
     mirror},
    {Bug::global_read_off_by_one, Rule::out_of_bounds, "reads 4 bytes at byte 512 of a buffer of 512",
     mirror},
    {Bug::null_read, Rule::out_of_bounds, "far from any buffer in bugs.cu:", mirror},
    {Bug::shared_write_off_by_one, Rule::out_of_bounds, "writes 4 bytes at byte 512 of 512 of shared memory",
     mirror},
    {Bug::uninitialised_shared, Rule::uninitialised_shared, "reads 4 bytes at byte 20 of 512", mirror},
    {Bug::uninitialised_global, Rule::uninitialised_global, "of a buffer of 512 in bugs.cu:", mirror},
    {Bug::same_element_twice, Rule::race, "writes 4 bytes", mirror},
    {Bug::race_across_blocks, Rule::race_across_blocks, "of another block", mirror},
    {Bug::plain_sum_across_blocks, Rule::race_across_blocks, "of another block", sum_of_blocks},
    {Bug::plain_sum_after_atomic, Rule::race, "of this block", twice_pairs},
    {Bug::overlapping_carve, Rule::race, "of shared memory in bugs.cu:", mirror},
    {Bug::divergent_barrier, Rule::divergent_barrier, "waits at the barrier bugs.cu:", mirror},
    {Bug::partial_collective, Rule::divergent_collective, "shfl_xor at bugs.cu:", neighbour},
    {Bug::two_collectives, Rule::divergent_collective, "other lanes in shfl_xor at bugs.cu:", neighbour},
    {Bug::collective_beside_barrier, Rule::divergent_collective, "barrier bugs.cu:", neighbour},
    {Bug::return_before_barrier, Rule::early_return, "the barrier bugs.cu:", mirror},
    {Bug::misaligned_access, Rule::misaligned, "no multiple of 16 at bugs.cu:", same}};

TEST(Checked, FindsEveryBug) {
  for (const Case& c : cases_of_bugs)
    in_all_schedules([&] {
      Buffer<float> x(random<float>(128, 19));
      auto y = Buffer<float>::output(128);
      try {
        bugs::run(c.bug, true, x.data(), y.data());
        ADD_FAILURE() << name_of(c.rule) << " was not found in bug " << static_cast<int>(c.bug);
      } catch (const Fault& fault) {
        EXPECT_EQ(name_of(fault.rule()), std::string(name_of(c.rule))) << fault.what();
        EXPECT_THAT(fault.what(), HasSubstr(c.text));
        EXPECT_THAT(fault.what(), HasSubstr(fmt::format("planted_kernel: {}: thread ", name_of(c.rule))));
      }
    });
}

TEST(Checked, AcceptsTheRightTwins) {
  for (const Case& c : cases_of_bugs)
    in_all_schedules([&] {
      const std::vector<float> values = random<float>(128, 20);
      Buffer<float> x(values);
      auto y = Buffer<float>::output(128);
      try {
        bugs::run(c.bug, false, x.data(), y.data());
      } catch (const Fault& fault) {
        ADD_FAILURE() << "false alarm: " << fault.what();
      }
      const std::vector<float> got = y.values();
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], c.wanted(values, i), 1e-6) << static_cast<int>(c.bug) << " element " << i;
    });
}

// Nothing is wrong with its accesses: only the values tell.
TEST(Checked, WrongLaneGivesWrongValues) {
  in_all_schedules([] {
    const std::vector<float> values = random<float>(128, 21);
    Buffer<float> x(values);
    const auto error = [&](bool planted) {
      auto y = Buffer<float>::output(128);
      bugs::run(Bug::wrong_lane, planted, x.data(), y.data());
      const std::vector<float> got = y.values();
      float largest = 0;
      for (std::size_t i = 0; i < got.size(); ++i)
        largest = std::max(largest, std::abs(got[i] - warp_sums(values, i)));
      return largest;
    };
    EXPECT_LT(error(false), 1e-5F);
    EXPECT_GT(error(true), 1e-2F);
  });
}

TEST(Checked, ReportsReadAsSentences) {
  configure({});
  Buffer<float> x(random<float>(128, 22));
  auto y = Buffer<float>::output(128);
  try {
    bugs::run(Bug::missing_barrier, true, x.data(), y.data());
    FAIL();
  } catch (const Fault& fault) {
    EXPECT_THAT(
        fault.what(),
        MatchesRegex(
            "planted_kernel: race: thread 0 of block \\(0, 0, 0\\) writes 4 bytes at byte 0 of 512 of shared "
            "memory in bugs.cu:[0-9]+, which thread 63 of this block read at bugs.cu:[0-9]+"));
  }
}

}  // namespace
}  // namespace gyre::simt
