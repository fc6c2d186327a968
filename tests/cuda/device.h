#pragma once

#include <cstdlib>
#include <string_view>

#include "core/device.h"

namespace gyre {

/// What tests of operations and models compare with the CPU in f64: cuda:0, or with GYRE_TEST_DEVICE=cpu the
/// CPU itself, which proves the tests where there is no GPU.
inline Device device_under_test() {
  const char* name = std::getenv("GYRE_TEST_DEVICE");
  return name != nullptr && std::string_view(name) == "cpu" ? Device::cpu() : Device::cuda();
}

}  // namespace gyre
