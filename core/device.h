#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace gyre {

enum class DeviceType { cpu, cuda };

/// Where a tensor lives; `index` counts the devices of one type.
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  static Device cpu() { return {}; }
  static Device cuda(int index = 0) { return {DeviceType::cuda, index}; }
  bool is_cpu() const { return type == DeviceType::cpu; }
  bool is_cuda() const { return type == DeviceType::cuda; }
  /// "cpu" or "cuda:0".
  std::string str() const;
  bool operator==(const Device&) const = default;
};

/// "auto", "cpu", "cuda" or "cuda:N"; `auto` takes CUDA where a device answers (not an emulated one). Throws
/// DeviceError with the reason.
Device parse_device(std::string_view name);
/// Why CUDA cannot be used here ("built without CUDA", "no NVIDIA driver"), or empty if it can.
std::string cuda_unavailable_reason();
/// For people: "cuda:0, NVIDIA H200, 150.1 GB"; "cpu", with the reason in brackets where a build with CUDA
/// finds no device.
std::string describe(Device device);
/// Waits for all work given to the device, and throws what it failed with; at once for the CPU.
void synchronize(Device device);

}  // namespace gyre

template <>
struct fmt::formatter<gyre::Device> : fmt::formatter<std::string_view> {
  auto format(gyre::Device device, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(device.str(), context);
  }
};
