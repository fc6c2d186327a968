#include "bench/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "bench/peak.h"
#include "core/parallel.h"
#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/simd.h"
#include "kernels/eq_choice.h"

namespace gyre {
namespace {

#ifdef __clang__
constexpr const char* compiler = "clang++ " __clang_version__;
#else
constexpr const char* compiler = "g++ " __VERSION__;
#endif

/// The value of the first "key : value" line; empty if there is none.
std::string_view find_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == line.npos) continue;
    if (line.substr(key.size(), colon - key.size()).find_first_not_of(" \t") != line.npos) continue;
    const std::size_t first = line.find_first_not_of(" \t", colon + 1);
    if (first == line.npos) continue;
    return line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
  }
  return {};
}

}  // namespace

std::string cpu_name(std::string_view cpuinfo, const std::string& architecture) {
  if (const std::string_view name = find_value(cpuinfo, "model name"); !name.empty())
    return std::string(name);
  const std::string_view maker = find_value(cpuinfo, "CPU implementer");
  if (maker.empty()) return architecture;
  return fmt::format("{} {} part {}", architecture, maker, find_value(cpuinfo, "CPU part"));
}

std::string this_cpu() {
  std::ifstream file("/proc/cpuinfo", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  utsname system{};
  const bool known = uname(&system) == 0;
  return cpu_name(text, known ? system.machine : "unknown");
}

Machine this_machine() {
  Machine machine;
  machine.cpu = this_cpu();
  machine.threads = num_threads();
  machine.pinned = threads_pinned();
  machine.simd = name_of(kernels::cpu::simd());
  machine.peak_gflops = measure_peak_gflops();
  machine.bandwidth_gbs = measure_bandwidth_gbs();
  machine.dense_library = kernels::cpu::dense_library_version();
  machine.tune_table = kernels::eq_table_id();
  machine.highway = highway_version();
  machine.compiler = compiler;
  return machine;
}

}  // namespace gyre
