#include "core/cuda/launch.h"

#include <string_view>

#include "core/error.h"

namespace gyre::cuda {

void fail_launch(const Launch& launch, const char* reason, bool out_of_memory) {
  const std::string_view path = launch.file;
  const std::string_view file = path.substr(path.find_last_of('/') + 1);
  const std::string text = fmt::format("kernel {} ({}:{}): {}", launch.kernel, file, launch.line, reason);
  if (out_of_memory) throw OutOfMemoryError(text);
  throw DeviceError(text);
}

}  // namespace gyre::cuda
