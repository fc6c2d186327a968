#pragma once

#include <cstdint>

// Kernels that use one primitive each, for the emulator and for a GPU. Every thread writes what it got.
namespace gyre::simt::cases {

/// y[i] = x[i] - the sum over the 256 elements of the block; n need not be a multiple.
void subtract_block_sum(const float* x, float* y, std::int64_t n, void* stream);

}  // namespace gyre::simt::cases
