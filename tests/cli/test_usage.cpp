#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/device.h"
#include "kernels/cpu/simd.h"
#include "tests/cli/program.h"
#include "train/config_schema.h"

namespace gyre {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Wrong use: exit code 2, one line on standard error, nothing on standard output.
void expect_error(const std::vector<std::string>& arguments, const std::string& text, int code = 2,
                  const Environment& environment = {}) {
  const Outcome outcome = run_gyre(arguments, environment);
  SCOPED_TRACE(testing::PrintToString(arguments));
  EXPECT_EQ(outcome.code, code);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("gyre: error: "));
  EXPECT_THAT(outcome.err, HasSubstr(text));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(Usage, VersionAndHelp) {
  const Outcome version = run_gyre({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("gyre [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const Outcome help = run_gyre({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* command :
       {"train", "finetune", "eval", "predict", "models", "verify", "bench", "config", "import", "export"}) {
    EXPECT_THAT(help.out, HasSubstr(std::string("\n  ") + command + " "));
  }
}

TEST(Usage, EveryCommandExplainsItsOptionsWithDefaults) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{{"train"},
                                                                                       {"finetune"},
                                                                                       {"eval"},
                                                                                       {"predict"},
                                                                                       {"models"},
                                                                                       {"verify"},
                                                                                       {"bench", "op"},
                                                                                       {"bench", "model"},
                                                                                       {"bench", "train"},
                                                                                       {"config"},
                                                                                       {"import"},
                                                                                       {"export"}}) {
    std::vector<std::string> arguments = command;
    arguments.push_back("--help");
    const Outcome help = run_gyre(arguments);
    EXPECT_EQ(help.code, 0) << command[0];
    EXPECT_EQ(help.err, "");
    // Every option line but help itself and the repeatable --set tells its default.
    std::size_t options = 0;
    for (std::size_t at = help.out.find("\n  --"); at != std::string::npos;
         at = help.out.find("\n  --", at + 1)) {
      const std::size_t next = std::min(help.out.find("\n  -", at + 1), help.out.find("\n\n", at + 1));
      const std::string entry = help.out.substr(at, next - at);
      if (entry.find("--set ") != std::string::npos) continue;
      EXPECT_THAT(entry, testing::AnyOf(HasSubstr("default:"), HasSubstr("--resume"))) << command[0];
      ++options;
    }
    EXPECT_GE(options, command[0] == "config" ? 0u : command[0] == "models" ? 1u : 2u) << help.out;
  }
}

TEST(Usage, TrainHelpListsEveryKey) {
  const Outcome help = run_gyre({"train", "--help"});
  for (const ConfigField& field : config_schema()) {
    EXPECT_THAT(help.out, HasSubstr(field.name + ": " + field.write(Config{})));
    EXPECT_THAT(help.out, HasSubstr(field.doc));
  }
}

TEST(Usage, WrongUseIsCodeTwoAndOneLine) {
  expect_error({}, "a command is required (see gyre --help)");
  expect_error({"trian"}, "unknown command trian, did you mean train? (see gyre --help)");
  expect_error({"bench", "tarin"}, "unknown command tarin, did you mean train? (see gyre bench --help)");
  expect_error({"models", "--jsno"}, "unknown option --jsno, did you mean --json? (see gyre models --help)");
  expect_error({"train", "c.yaml", "d.yaml"}, "unexpected argument d.yaml (see gyre train --help)");
  expect_error({"train", "c.yaml", "--max-stesp=3"}, "unknown option --max-stesp, did you mean --max-steps?");
  expect_error({"train"}, "CONFIG is required");
  expect_error({"eval"}, "CHECKPOINT is required");
  expect_error({"predict", "somewhere"}, "IMAGE is required");
  expect_error({"bench"}, "gyre bench --help");
  expect_error({"models", "--frobnicate"}, "unknown option --frobnicate (see gyre models --help)");
  expect_error({"bench", "train", "--backend", "flash"}, "unknown option --backend");
  expect_error({"train", "c.yaml", "--threads", "two"}, "--threads: 'two' is not a whole number");
  expect_error({"train", "c.yaml", "--threads", "-1"}, "--threads: -1 is out of range [0, 1024]");
  expect_error({"train", "c.yaml", "--threads", "1.5"}, "'1.5' is not a whole number");
  expect_error({"train", "c.yaml", "--max-steps", "99999999999999999999"}, "out of range");
  expect_error({"bench", "train", "--seconds", "0"}, "--seconds: 0 is out of range (0, 3600]");
  expect_error({"bench", "train", "--seconds", "0,5"}, "--seconds: '0,5' is not a number");
  expect_error({"eval", "somewhere", "--backend", "flsh"},
               "'flsh' is not one of auto, flash, naive, fused, packed; did you mean flash?");
  expect_error({"eval", "somewhere", "--weights", "mean"}, "'mean' is not one of ema, raw");
  expect_error({"eval", "somewhere", "--mirrors"}, "--mirrors needs --rotations");
}

TEST(Usage, MissingCheckpointsAreFailures) {
  expect_error({"eval", "no/such/checkpoint"}, "no/such/checkpoint", 1);
  expect_error({"predict", "no/such/checkpoint", "x.png"}, "no/such/checkpoint", 1);
}

TEST(Usage, MissingDeviceIsAFailureWithItsReason) {
  const std::string reason = cuda_unavailable_reason();
  if (reason.empty()) GTEST_SKIP() << "a CUDA device answers here";
  const TemporaryFolder folder;
  const std::string yaml = folder.write("c.yaml", "train: {epochs: 1}\n");
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"train", yaml},
                                             {"finetune", "run", yaml},
                                             {"eval", "run"},
                                             {"predict", "run", "a.png"},
                                             {"verify", "eq_vit"},
                                             {"bench", "model", yaml},
                                             {"bench", "train", yaml}}) {
    for (const char* device : {"cuda", "cuda:1"}) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"--device", device});
      expect_error(words, fmt::format("device '{}' is not available: {}", device, reason), 1);
    }
  }
}

TEST(Usage, UnknownDevicesAndProductsAreWrongUse) {
  const TemporaryFolder folder;
  const std::string yaml = folder.write("c.yaml", "train: {epochs: 1}\n");
  for (const char* device : {"gpu", "cuda:", "cuda:x", ""})
    expect_error({"train", yaml, std::string("--device=") + device}, "--device");
  expect_error({"bench", "op", "--products", "3"}, "--products: 3 is not one of 0, 5, 6 of group c4");
  expect_error({"bench", "op", "--products", "all"}, "--products: 'all' is not a whole number");
  expect_error({"bench", "op", "--group", "c4,c5"}, "--group: ");
  expect_error({"bench", "op", "--channels", "16,"}, "--channels: '' is not a whole number");
  expect_error({"bench", "op", "--direction", "fore"},
               "--direction: 'fore' is not one of forward, backward, dx, dw");
  expect_error({"bench", "op", "--impl", "naive,fast"}, "--impl: backend 'fast': expected auto, flash");
  expect_error({"bench", "model", "--impl", ""}, "--impl: backend ''");
  expect_error({"bench", "model", "--runs", "0"}, "--runs: 0 is out of range [1, 100]");
  expect_error({"bench", "model", "--image-size", "big"}, "model.image_size");
  expect_error({"bench", "train", "--model", "vit_tt"}, "model.name");
}

TEST(Usage, UnknownInstructionSetsAreWrongUseAndMissingOnesFailures) {
  for (const char* name : {"", "avx", "AVX512"})
    expect_error({"models"}, "GYRE_SIMD: '" + std::string(name) + "' is not one of portable, ", 2,
                 {{"GYRE_SIMD", name}});
  using kernels::cpu::Simd;
  const std::vector<Simd> sets = kernels::cpu::machine_simd();
  for (const Simd set : {Simd::neon, Simd::avx2, Simd::avx512}) {
    const std::string name(kernels::cpu::name_of(set));
    if (std::find(sets.begin(), sets.end(), set) == sets.end()) {
      expect_error({"models"}, "GYRE_SIMD=" + name + ": this machine has only portable", 1,
                   {{"GYRE_SIMD", name}});
    } else {
      EXPECT_EQ(run_gyre({"models"}, {{"GYRE_SIMD", name}}).code, 0);
    }
  }
}

TEST(Usage, FullStandardOutputIsAFailure) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"models"}, {"config"}, {"--help"}}) {
    const Outcome outcome = run_gyre(arguments, {}, "/dev/full");
    EXPECT_EQ(outcome.code, 1) << arguments[0];
    EXPECT_THAT(outcome.err, HasSubstr("cannot write standard output: No space left on device"));
  }
}

}  // namespace
}  // namespace gyre
