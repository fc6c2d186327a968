#pragma once

#include <string>

namespace gyre {

/// Highest rate of f32 fused multiply-adds that all loop threads reach together here, in 1e9 FLOPs (2 per
/// multiply-add) per second: best of several short bursts on registers alone.
double measure_peak_gflops();

/// Highest rate at which all loop threads together stream from one large array into another, in 1e9 bytes
/// (read and written) per second.
double measure_bandwidth_gbs();

/// Of the vector library, "1.0.3".
std::string highway_version();

}  // namespace gyre
