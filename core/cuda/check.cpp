#include "core/cuda/check.h"

#include <string_view>

#include "core/error.h"

namespace gyre::cuda {

void throw_failed_call(const char* call, const char* file, int line, const std::string& why,
                       bool out_of_memory) {
  const std::string_view path = file, name = path.substr(path.rfind('/') + 1);
  const std::string text = fmt::format("{}:{}: {} failed: {}", name, line, call, why);
  if (out_of_memory) throw OutOfMemoryError(text);
  throw DeviceError(text);
}

}  // namespace gyre::cuda
