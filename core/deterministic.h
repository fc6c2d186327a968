#pragma once

namespace gyre {

/// Whether results must be the same bits in every process: kernels are chosen by rule alone. Otherwise CUDA
/// may time kernels that round differently and keep the fastest. On unless set; for the process.
void set_deterministic(bool on);
bool deterministic();

}  // namespace gyre
