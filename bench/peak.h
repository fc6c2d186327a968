#pragma once

namespace gyre {

/// Highest rate of f32 fused multiply-adds that all loop threads reach together here, in 1e9 FLOPs (2 per
/// multiply-add) per second: best of several short bursts on registers alone.
double measure_peak_gflops();

}  // namespace gyre
