#pragma once

#include <string>

namespace gyre::cuda {

/// Throws DeviceError "FILE:LINE: CALL failed: WHY".
[[noreturn]] void throw_failed_call(const char* call, const char* file, int line, const std::string& why);

}  // namespace gyre::cuda
