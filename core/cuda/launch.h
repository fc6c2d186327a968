#pragma once

namespace gyre::cuda {

/// The launch of a kernel in a source line.
struct Launch {
  const char* kernel;
  const char* file;
  int line;
};

/// Throws DeviceError: "kernel softmax (softmax.cu:40): REASON".
[[noreturn]] void fail_launch(const Launch& launch, const char* reason);

}  // namespace gyre::cuda
