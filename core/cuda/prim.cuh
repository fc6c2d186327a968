#pragma once

// Everything that a kernel may use beyond plain C++17. Each primitive stands here twice, side by side: for
// nvcc, as PTX or an intrinsic, and for an ordinary compiler, on the SIMT emulator of tests/simt. Kernels
// include nothing else of CUDA.
//
//   GYRE_KERNEL(256) scale_kernel(const float* x, float* y, float factor, std::int64_t n) { ... }
//   void scale(const float* x, float* y, float factor, std::int64_t n, void* stream) {
//     GYRE_LAUNCH(scale_kernel, prim::Grid{prim::blocks(n, 256)}, 256, 0, stream, x, y, factor, n);
//   }
//
// Collectives (sync, shuffles, ballot, sums, ldmatrix, mma) need all threads of the block or warp, and stand
// one per line.

#include "core/cuda/prim_launch.cuh"
#include "core/cuda/prim_matrix.cuh"
#include "core/cuda/prim_memory.cuh"
#include "core/cuda/prim_number.cuh"
#include "core/cuda/prim_warp.cuh"
