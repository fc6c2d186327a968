#include "core/device.h"

#include <charconv>

#include "core/cuda/runtime.h"
#include "core/error.h"

namespace gyre {
namespace {

Device checked_cuda(std::string_view name, int index) {
  const std::string reason = cuda::unavailable_reason(index);
  require<DeviceError>(reason.empty(), "device '{}' is not available: {}", name, reason);
  return Device::cuda(index);
}

}  // namespace

std::string Device::str() const { return is_cpu() ? "cpu" : fmt::format("cuda:{}", index); }

Device parse_device(std::string_view name) {
  if (name == "cpu") return Device::cpu();
  if (name == "auto")
    return cuda_unavailable_reason().empty() && !cuda::emulated() ? Device::cuda() : Device::cpu();
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

std::string describe(Device device) {
  if (device.is_cuda()) {
    const cuda::DeviceInfo info = cuda::device_info(device.index);
    return fmt::format("{}, {}, {:.1f} GB", device, info.name, static_cast<double>(info.memory) / 1e9);
  }
  const std::string reason = cuda_unavailable_reason();
  return reason.empty() || reason == "built without CUDA" ? "cpu" : fmt::format("cpu (CUDA: {})", reason);
}

void synchronize(Device device) {
  if (device.is_cuda()) cuda::synchronize(device.index);
}

std::string cuda_unavailable_reason() { return cuda::unavailable_reason(); }

}  // namespace gyre
