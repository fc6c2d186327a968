#include "core/cuda/library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "core/error.h"

#ifndef GYRE_CUDA_LIBRARY_DIR
#define GYRE_CUDA_LIBRARY_DIR ""
#endif

namespace gyre::cuda {

Library::Library(const std::string& file) : file_(file) {
  handle_ = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle_ != nullptr) return;
  const std::string reason = dlerror();
  const char* home = std::getenv("CUDA_HOME");
  for (const std::string& folder :
       {home == nullptr ? "" : std::string(home) + "/lib64", std::string(GYRE_CUDA_LIBRARY_DIR)}) {
    if (!folder.empty()) handle_ = dlopen((folder + "/" + file).c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle_ != nullptr) return;
  }
  throw DeviceError(
      fmt::format("{}; add the folder of CUDA's libraries to LD_LIBRARY_PATH, or set CUDA_HOME", reason));
}

void* Library::symbol(const char* name) const {
  void* const address = dlsym(handle_, name);
  require<DeviceError>(address != nullptr, "{} has no function {}", file_, name);
  return address;
}

}  // namespace gyre::cuda
