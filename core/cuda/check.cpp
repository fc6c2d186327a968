#include "core/cuda/check.h"

#include <string_view>

#include "core/error.h"

namespace gyre::cuda {

void throw_failed_call(const char* call, const char* file, int line, const std::string& why) {
  const std::string_view path = file, name = path.substr(path.rfind('/') + 1);
  throw DeviceError(fmt::format("{}:{}: {} failed: {}", name, line, call, why));
}

}  // namespace gyre::cuda
