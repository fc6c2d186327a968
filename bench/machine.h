#pragma once

#include <string>
#include <string_view>

namespace gyre {

/// What a measurement ran on.
struct Machine {
  std::string cpu;   ///< "AMD EPYC 9654 96-Core Processor"
  int threads = 0;   ///< of compute
  std::string simd;  ///< instruction set of the kernels: "avx512"
};

Machine this_machine();
/// Name of the processor from the text of /proc/cpuinfo: its model name where the kernel knows one, else
/// `architecture` with the maker's part number.
std::string cpu_name(std::string_view cpuinfo, const std::string& architecture);

}  // namespace gyre
