#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "bench/machine.h"
#include "core/cuda/runtime.h"
#include "core/parallel.h"
#include "kernels/cpu/simd.h"
#include "train/cli/command.h"

namespace gyre::cli {
namespace {

using nlohmann::ordered_json;

/// 13.0 from 13000, as CUDA counts its versions.
std::string cuda_version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }
/// 9.0 from 90.
std::string capability(int number) { return fmt::format("{}.{}", number / 10, number % 10); }

void print_json() {
  const std::string reason = cuda_unavailable_reason();
  auto devices = ordered_json::array();
  ordered_json runtime, driver;
  for (int index = 0; index < cuda::device_count(); ++index) {
    const cuda::DeviceInfo info = cuda::device_info(index);
    const std::string unusable = cuda::unavailable_reason(index);
    devices.push_back({{"device", Device::cuda(index).str()},
                       {"name", info.name},
                       {"memory_mb", static_cast<double>(info.memory) * 1e-6},
                       {"capability", capability(info.capability)},
                       {"multiprocessors", info.multiprocessors},
                       {"reason", unusable.empty() ? ordered_json() : ordered_json(unusable)}});
    runtime = cuda_version(info.runtime_version);
    driver = cuda_version(info.driver_version);
  }
  const ordered_json json{
      {"cpu", {{"name", this_cpu()}, {"threads", num_threads()}, {"simd", name_of(kernels::cpu::simd())}}},
      {"cuda",
       {{"available", reason.empty()},
        {"reason", reason.empty() ? ordered_json() : ordered_json(reason)},
        {"emulated", cuda::emulated()},
        {"runtime", runtime},
        {"driver", driver},
        {"devices", devices}}}};
  fmt::print("{}\n", json.dump(2));
}

void print_text() {
  fmt::print("{:<8}{}, {} threads, {}\n", "cpu", this_cpu(), num_threads(), name_of(kernels::cpu::simd()));
  const std::string reason = cuda_unavailable_reason();
  if (!reason.empty()) fmt::print("{:<8}none: {}\n", "cuda", reason);
  for (int index = 0; index < cuda::device_count(); ++index) {
    const cuda::DeviceInfo info = cuda::device_info(index);
    const std::string unusable = cuda::unavailable_reason(index);
    fmt::print("{:<8}{}, {:.1f} GB, compute capability {}, {} multiprocessors, CUDA {} (driver: {}){}\n",
               Device::cuda(index), info.name, static_cast<double>(info.memory) * 1e-9,
               capability(info.capability), info.multiprocessors, cuda_version(info.runtime_version),
               cuda_version(info.driver_version),
               unusable.empty() ? "" : fmt::format(": unusable, {}", unusable));
  }
}

}  // namespace

void add_devices_command(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("devices", "list what this machine can compute on, or why it has no CUDA device");
  add_json_option(*command, *json);
  command->callback([json, &action] {
    action = [json] {
      *json ? print_json() : print_text();
      return success;
    };
  });
}

}  // namespace gyre::cli
