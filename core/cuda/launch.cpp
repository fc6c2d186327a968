#include "core/cuda/launch.h"

#include <string_view>

#include "core/error.h"

namespace gyre::cuda {

void fail_launch(const Launch& launch, const char* reason) {
  const std::string_view path = launch.file;
  const std::string_view file = path.substr(path.find_last_of('/') + 1);
  throw DeviceError(fmt::format("kernel {} ({}:{}): {}", launch.kernel, file, launch.line, reason));
}

}  // namespace gyre::cuda
