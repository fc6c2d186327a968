#pragma once

namespace gyre::simt::bugs {

/// One classic mistake in a kernel that turns x into y, 128 floats each in two blocks of 64 threads: with a
/// temporary in shared memory, y[i] = x[mirror image of i in its block] unless said otherwise.
enum class Bug {
  missing_barrier,
  missing_barrier_of_loop,  // the next round overwrites what others still read
  missing_warp_barrier,     // mirrored within a warp
  missing_wait,
  wait_too_weak,  // for all groups but one
  missing_commit,
  missing_barrier_after_wait,
  copy_never_waited_for,  // y is x
  global_write_off_by_one,
  global_read_off_by_one,
  null_read,
  shared_write_off_by_one,
  uninitialised_shared,
  uninitialised_global,     // y accumulates into what nobody wrote
  same_element_twice,       // two threads of a block write one element
  race_across_blocks,       // both blocks write one half of y; right: each its own
  plain_sum_across_blocks,  // y[lane] += x without atomics
  plain_sum_after_atomic,
  overlapping_carve,  // two arrays share bytes
  divergent_barrier,
  partial_collective,  // half a warp shuffles
  two_collectives,     // lanes of a warp shuffle at two lines
  collective_beside_barrier,
  return_before_barrier,
  misaligned_access,
  wrong_lane  // y[warp] = sum of x over a warp, taken from a lane that lacks it
};

/// The kernel with the mistake, or its right twin.
void run(Bug bug, bool planted, const float* x, float* y);

}  // namespace gyre::simt::bugs
