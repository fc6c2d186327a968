#include "core/device.h"

#include <charconv>

#ifdef GYRE_WITH_CUDA
#include <dlfcn.h>
#endif

#include "core/error.h"

namespace gyre {
namespace {

struct CudaProbe {
  int devices = 0;
  std::string reason;  // empty if devices > 0
};

#ifdef GYRE_WITH_CUDA
CudaProbe probe_cuda() {
  // The driver is opened at run time so that one binary runs with and without it.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return {0, "no NVIDIA driver"};
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  if (init == nullptr || count == nullptr) return {0, "the NVIDIA driver lacks cuInit or cuDeviceGetCount"};
  if (const int error = init(0); error != 0) return {0, fmt::format("cuInit failed with error {}", error)};
  int devices = 0;
  if (const int error = count(&devices); error != 0) {
    return {0, fmt::format("cuDeviceGetCount failed with error {}", error)};
  }
  if (devices < 1) return {0, "the NVIDIA driver lists no device"};
  return {devices, ""};
}
#else
CudaProbe probe_cuda() { return {0, "built without CUDA"}; }
#endif

const CudaProbe& cuda_probe() {
  static const CudaProbe probe = [] {
    const CudaProbe found = probe_cuda();
    // "auto" must not choose a device that cannot hold a tensor.
    return found.devices > 0 ? CudaProbe{0, "no CUDA storage in this build"} : found;
  }();
  return probe;
}

Device checked_cuda(std::string_view name, int index) {
  const CudaProbe& probe = cuda_probe();
  require<DeviceError>(probe.devices > 0, "device '{}' is not available: {}", name, probe.reason);
  require<DeviceError>(index < probe.devices, "device '{}' is not available: {} CUDA device(s) present", name,
                       probe.devices);
  return Device::cuda(index);
}

}  // namespace

std::string Device::str() const { return is_cpu() ? "cpu" : fmt::format("cuda:{}", index); }

Device parse_device(std::string_view name) {
  if (name == "cpu") return Device::cpu();
  if (name == "auto") return cuda_probe().devices > 0 ? Device::cuda() : Device::cpu();
  if (name == "cuda") return checked_cuda(name, 0);
  constexpr std::string_view prefix = "cuda:";
  if (name.starts_with(prefix)) {
    const std::string_view digits = name.substr(prefix.size());
    int index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc() && end == digits.data() + digits.size() && index >= 0)
      return checked_cuda(name, index);
  }
  throw DeviceError(fmt::format("device '{}': expected auto, cpu, cuda or cuda:N", name));
}

std::string cuda_unavailable_reason() { return cuda_probe().reason; }

}  // namespace gyre
