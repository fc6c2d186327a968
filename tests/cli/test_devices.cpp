#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/cuda/runtime.h"
#include "core/device.h"
#include "tests/cli/program.h"

namespace gyre {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

TEST(DevicesCommand, TellsWhatTheLibraryKnows) {
  const Outcome outcome = run_gyre({"devices", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const json devices = json::parse(outcome.out);
  EXPECT_NE(devices.at("cpu").at("name"), "");
  EXPECT_GT(devices.at("cpu").at("threads"), 0);
  const json& cuda = devices.at("cuda");
  const std::string reason = cuda_unavailable_reason();
  EXPECT_EQ(cuda.at("available"), reason.empty());
  EXPECT_EQ(cuda.at("reason"), reason.empty() ? json() : json(reason));
  ASSERT_EQ(cuda.at("devices").size(), static_cast<std::size_t>(cuda::device_count()));
  for (int i = 0; i < cuda::device_count(); ++i) {
    const json& device = cuda.at("devices").at(static_cast<std::size_t>(i));
    EXPECT_EQ(device.at("device"), Device::cuda(i).str());
    EXPECT_EQ(device.at("name"), cuda::device_info(i).name);
    EXPECT_GT(device.at("memory_mb"), 0);
  }
}

TEST(DevicesCommand, TextSaysWhyThereIsNoGpu) {
  const Outcome outcome = run_gyre({"devices"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("cpu     "));
  const std::string reason = cuda_unavailable_reason();
  EXPECT_THAT(outcome.out, HasSubstr(reason.empty() ? "\ncuda:0  " + cuda::device_info(0).name
                                                    : "\ncuda    none: " + reason));
}

}  // namespace
}  // namespace gyre
