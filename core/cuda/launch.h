#pragma once

namespace gyre::cuda {

/// The launch of a kernel in a source line.
struct Launch {
  const char* kernel;
  const char* file;
  int line;
};

/// Throws DeviceError, or OutOfMemoryError if that was it: "kernel softmax (softmax.cu:40): REASON".
[[noreturn]] void fail_launch(const Launch& launch, const char* reason, bool out_of_memory = false);

}  // namespace gyre::cuda
