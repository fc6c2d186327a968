#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/cpu/flash_kernels.h"
#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/simd.h"
#include "kernels/eq_linear.h"
#include "tests/kernels/op_test.h"

namespace gyre::kernels {
namespace {

using cpu::Simd;
using testing::HasSubstr;
using testing::Not;

TEST(Simd, ForcedSetRunsElseTheFastest) {
  const char* forced = std::getenv("GYRE_SIMD");
  const std::string wanted(forced ? forced : cpu::name_of(cpu::machine_simd().back()));
  EXPECT_EQ(cpu::name_of(cpu::simd()), wanted);
  EXPECT_EQ(cpu::flash_target(), wanted);  // compiled into the code that runs
  EXPECT_EQ(eq_linear_kernel(Group::get("c4"), {EqBackend::fused}, DType::f32, 64, 32, 32),
            "flash5_" + wanted);
}

TEST(Simd, ForcedSetHoldsTheDenseProducts) {
  const std::string kernel = cpu::gemm_f32_kernel({1, 256, 256, 256, 0, 256, 1, 0, 256, 1, 0, 256});
  if (cpu::simd() != Simd::avx512) {
    EXPECT_THAT(kernel, Not(HasSubstr("avx512")));
  }
  if (cpu::simd() == Simd::portable) {
    EXPECT_THAT(kernel, Not(HasSubstr("avx")));
  }
}

TEST(Simd, MachineHasThePortableSetAndNoSetTwice) {
  const std::vector<Simd> sets = cpu::machine_simd();
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.front(), Simd::portable);
  EXPECT_TRUE(std::is_sorted(sets.begin(), sets.end(), std::less_equal<>()));
  for (const Simd set : sets) EXPECT_EQ(cpu::parse_simd(cpu::name_of(set)), set);
}

TEST(Simd, UnknownNamesAndMissingSetsAreErrors) {
  for (const char* name : {"", "AVX2", "avx", "avx512 ", "sse4"}) {
    EXPECT_THAT(message_of<ValueError>([&] { cpu::parse_simd(name); }),
                HasSubstr(fmt::format("GYRE_SIMD: '{}' is not one of portable, neon, avx2, avx512", name)));
  }
  const std::vector<Simd> sets = cpu::machine_simd();
  int missing = 0;
  for (const Simd set : {Simd::neon, Simd::avx2, Simd::avx512}) {
    if (std::find(sets.begin(), sets.end(), set) != sets.end()) continue;
    const std::string text = message_of<DeviceError>([&] { cpu::parse_simd(cpu::name_of(set)); });
    EXPECT_THAT(text,
                HasSubstr(fmt::format("GYRE_SIMD={}: this machine has only portable", cpu::name_of(set))));
    ++missing;
  }
  EXPECT_GE(missing, 1);  // no machine has them all
}

}  // namespace
}  // namespace gyre::kernels
