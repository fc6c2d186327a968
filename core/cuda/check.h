#pragma once

#include <string>

namespace gyre::cuda {

/// Throws DeviceError, or OutOfMemoryError if that was it: "FILE:LINE: CALL failed: WHY".
[[noreturn]] void throw_failed_call(const char* call, const char* file, int line, const std::string& why,
                                    bool out_of_memory = false);

}  // namespace gyre::cuda
