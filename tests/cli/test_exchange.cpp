#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "tests/cli/program.h"

namespace gyre {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string golden(const std::string& name) {
  return std::string(GYRE_SOURCE_DIR) + "/tests/golden/" + name + ".safetensors";
}

std::vector<std::string> import_of(const std::string& file, const std::string& out) {
  std::vector<std::string> words{"import", file, "--model", "vit", "--out", out};
  for (const char* key : {"image_size=32", "in_channels=3", "patch_size=8", "width=64", "depth=2", "heads=2",
                          "mlp_ratio=2", "pool=token"}) {
    words.push_back("--set");
    words.push_back(std::string("model.") + key);
  }
  return words;
}

TEST(ExchangeCommands, ImportThenExportGivesTheSameTensors) {
  const TemporaryFolder folder;
  const Outcome in = run_gyre(import_of(golden("vit_token"), folder / "c"));
  ASSERT_EQ(in.code, 0) << in.err;
  EXPECT_THAT(in.out, HasSubstr("model       vit, 81,226 parameters, 10 classes\n"));
  EXPECT_THAT(in.out, HasSubstr("layout      timm, 32 tensors\n"));
  EXPECT_THAT(in.out, HasSubstr("mean 0.5 0.5 0.5"));
  const Outcome out =
      run_gyre({"export", folder / "c", folder / "w.safetensors", "--layout", "timm", "--json"});
  ASSERT_EQ(out.code, 0) << out.err;
  EXPECT_EQ(json::parse(out.out).at("values"), 81226);
  const Outcome again = run_gyre({"import", folder / "w.safetensors", "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out).at("model"), "vit");
  EXPECT_EQ(read_file(folder / "c/model.safetensors"), read_file(folder / "w/model.safetensors"));
}

TEST(ExchangeCommands, BadInputIsOneLine) {
  const TemporaryFolder folder;
  const std::string whole = read_file(golden("vit_token"));
  const auto expect = [&](const Outcome& outcome, int code, const std::string& text) {
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(text));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "c"));
  };
  const std::string cut = folder.write("cut.safetensors", whole.substr(0, whole.size() / 2));
  expect(run_gyre(import_of(cut, folder / "c")), 1,
         "cut.safetensors: truncated: header says 324904 bytes of data");
  expect(run_gyre({"import", golden("vit_token"), "--model", "vti", "--out", folder / "c"}), 2,
         "did you mean");
  expect(run_gyre({"import", golden("vit_token"), "--out", folder / "c"}), 2, "name it with --model");
  expect(run_gyre({"import", golden("vit_token"), "--model", "vit", "--mean", "0.5;1"}), 2,
         "--mean: '0.5;1' is not a number");
  expect(run_gyre({"import", golden("vit_token"), "--layout", "tim"}), 2, "did you mean timm?");
  const auto swin = [&](const std::string& depths, const std::string& window) {
    std::vector<std::string> words{"import", golden("swin"), "--model", "swin", "--out", folder / "c"};
    for (const std::string& pair : {std::string("image_size=32"), std::string("in_channels=3"),
                                    std::string("width=16"), "depths=" + depths, "window=" + window}) {
      words.push_back("--set");
      words.push_back("model." + pair);
    }
    return run_gyre(words);
  };
  expect(swin("[2, 3]", "4"), 1,
         "swin.safetensors: no tensor \"layers.1.blocks.2.attn.proj.bias\", expected with shape [32]");
  expect(
      swin("[2, 2]", "8"), 1,
      "swin.safetensors: tensor \"layers.0.blocks.0.attn.relative_position_bias_table\" has shape [49, 2], "
      "expected [225, 2]");
  expect(run_gyre({"export", folder / "absent", folder / "x.safetensors"}), 1, "does not exist");
}

}  // namespace
}  // namespace gyre
