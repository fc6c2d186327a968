#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

// Dense device arrays; no extent is 0.

/// x [rows, m], index [k] in [0, m) → y [rows, k]; elements of `size` = 1, 2, 4 or 8 bytes.
void launch_gather(const void* x, const std::int64_t* index, void* y, std::int64_t rows, std::int64_t m,
                   std::int64_t k, int size, void* stream);
/// result [rows, m]: element j is the sum of grad[row, order[i]] for starts[j] ≤ i < starts[j + 1];
/// starts [m + 1]. T = float, double, prim::half_t or prim::bf16_t.
template <class T>
void launch_gather_backward(const T* grad, const std::int64_t* starts, const std::int64_t* order, T* result,
                            std::int64_t rows, std::int64_t m, std::int64_t k, void* stream);
/// Rows of `bytes` bytes of `from`, `from_stride` bytes apart, to rows `to_stride` bytes apart. `index`
/// [count] or null names the rows of each of `batches` blocks: block b starts at row b·length of `from`.
struct RowCopy {
  const void* from;
  void* to;
  const std::int64_t* index;
  std::int64_t batches, count, length;
  std::int64_t bytes, from_stride, to_stride;
};
void launch_row_copy(const RowCopy& copy, void* stream);

}  // namespace gyre::kernels::cuda
