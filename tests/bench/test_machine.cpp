#include "bench/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/parallel.h"
#include "kernels/cpu/simd.h"

namespace gyre {
namespace {

TEST(Machine, NamesTheProcessor) {
  EXPECT_EQ(
      cpu_name("processor\t: 0\nmodel\t\t: 17\nmodel name\t: Fast CPU @ 3.00GHz\nflags : x\n", "x86_64"),
      "Fast CPU @ 3.00GHz");
  EXPECT_EQ(cpu_name("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "aarch64"),
            "aarch64 0x41 part 0xd0c");
  EXPECT_EQ(cpu_name("", "riscv64"), "riscv64");
  EXPECT_EQ(cpu_name("model name\t:\n", "riscv64"), "riscv64");
}

TEST(Machine, TellsWhatItRunsWith) {
  set_num_threads(2);
  const Machine machine = this_machine();
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_EQ(machine.threads, 2);
  EXPECT_FALSE(machine.pinned);  // GYRE_PIN=0 under ctest, and nothing here pins
  EXPECT_EQ(machine.simd, name_of(kernels::cpu::simd()));
  EXPECT_GT(machine.peak_gflops, 0.1);
  EXPECT_GT(machine.bandwidth_gbs, 0.1);
  const auto version = testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+");
  EXPECT_THAT(machine.dense_library, testing::MatchesRegex("(oneDNN|Eigen) [0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(machine.highway, version);
  EXPECT_THAT(machine.compiler, testing::MatchesRegex("(g|clang)\\+\\+ [0-9]+\\..*"));
}

}  // namespace
}  // namespace gyre
