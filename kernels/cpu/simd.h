#pragma once

#include <string_view>
#include <vector>

namespace gyre::kernels::cpu {

/// Instruction sets that the vector kernels are compiled for; `portable` is plain C++.
enum class Simd { portable, neon, avx2, avx512 };

/// "portable", "neon", "avx2" or "avx512".
std::string_view name_of(Simd set);

/// Those that this machine runs, slowest first; `portable` is always one of them.
const std::vector<Simd>& machine_simd();

/// The set of that name. Throws ValueError for any other text, DeviceError for a set that this machine lacks.
Simd parse_simd(std::string_view name);

/// The set in use, one per process, chosen by the first call: the one that the environment variable GYRE_SIMD
/// names, else the fastest. Throws as parse_simd does, then and at every later call.
Simd simd();

}  // namespace gyre::kernels::cpu
