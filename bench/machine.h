#pragma once

#include <string>
#include <string_view>

namespace gyre {

/// What a measurement ran on.
struct Machine {
  std::string cpu;            ///< "AMD EPYC 9654 96-Core Processor"
  int threads = 0;            ///< of compute
  bool pinned = false;        ///< each thread bound to a core of its own
  std::string simd;           ///< instruction set of the kernels: "avx512"
  double peak_gflops = 0;     ///< measured: f32 multiply-adds of all threads on registers
  double bandwidth_gbs = 0;   ///< measured: 1e9 bytes read and written per second beyond the caches
  std::string dense_library;  ///< "oneDNN 2.6.3": behind the ordinary layers
  std::string tune_table;     ///< id of the table that chooses kernels; empty: the fixed rule
  std::string highway;        ///< version
  std::string compiler;       ///< "g++ 12.2.0"
};

/// Looks around and measures peak and bandwidth with the threads in use, in about a quarter of a second.
Machine this_machine();
/// Name of this machine's processor.
std::string this_cpu();
/// Name of the processor from the text of /proc/cpuinfo: its model name where the kernel knows one, else
/// `architecture` with the maker's part number.
std::string cpu_name(std::string_view cpuinfo, const std::string& architecture);

}  // namespace gyre
