#include "kernels/cuda/gather_launch.h"

#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {
namespace {

constexpr int block = 256;
constexpr std::int64_t most_blocks = 65536;  // the rest is looped over

/// 16 bytes that move as they are.
using Line = prim::Pack<std::uint32_t>;

template <class Word>
GYRE_KERNEL(block)
gather_kernel(const Word* x, const std::int64_t* index, Word* y, std::int64_t rows, std::int64_t m,
              std::int64_t k) {
  for (std::int64_t i = prim::global_thread(); i < rows * k; i += prim::global_threads()) {
    const std::int64_t row = i / k;
    y[i] = x[row * m + index[i - row * k]];
  }
}

template <class T>
GYRE_KERNEL(block)
gather_backward_kernel(const T* grad, const std::int64_t* starts, const std::int64_t* order, T* result,
                       std::int64_t rows, std::int64_t m, std::int64_t k) {
  for (std::int64_t i = prim::global_thread(); i < rows * m; i += prim::global_threads()) {
    const std::int64_t row = i / m, column = i - row * m;
    Wide<T> sum = 0;
    for (std::int64_t at = starts[column]; at < starts[column + 1]; ++at)
      sum += prim::widen(grad[row * k + order[at]]);
    result[i] = prim::from_float<T>(sum);
  }
}

/// One thread for each word of a row.
template <class Word>
GYRE_KERNEL(block)
row_copy_kernel(RowCopy copy) {
  const std::int64_t words = copy.bytes / static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t total = copy.batches * copy.count * words;
  for (std::int64_t i = prim::global_thread(); i < total; i += prim::global_threads()) {
    const std::int64_t row = i / words, word = i - row * words;
    const std::int64_t batch = row / copy.count, place = row - batch * copy.count;
    const std::int64_t source = batch * copy.length + (copy.index != nullptr ? copy.index[place] : place);
    const auto* const from = static_cast<const unsigned char*>(copy.from) + source * copy.from_stride;
    auto* const to = static_cast<unsigned char*>(copy.to) + row * copy.to_stride;
    if constexpr (sizeof(Word) == 16)
      prim::st128(reinterpret_cast<std::uint32_t*>(to) + word * 4,
                  prim::ld128(reinterpret_cast<const std::uint32_t*>(from) + word * 4));
    else
      reinterpret_cast<Word*>(to)[word] = reinterpret_cast<const Word*>(from)[word];
  }
}

prim::Grid grid_for(std::int64_t items) {
  const std::int64_t blocks = prim::blocks(items, block);
  return {blocks < most_blocks ? blocks : most_blocks};
}

template <class Word>
void gather_words(const void* x, const std::int64_t* index, void* y, std::int64_t rows, std::int64_t m,
                  std::int64_t k, void* stream) {
  GYRE_LAUNCH(gather_kernel<Word>, grid_for(rows * k), block, 0, stream, static_cast<const Word*>(x), index,
              static_cast<Word*>(y), rows, m, k);
}

template <class Word>
void copy_words(const RowCopy& copy, void* stream) {
  const std::int64_t words = copy.bytes / static_cast<std::int64_t>(sizeof(Word));
  GYRE_LAUNCH(row_copy_kernel<Word>, grid_for(copy.batches * copy.count * words), block, 0, stream, copy);
}

}  // namespace

void launch_gather(const void* x, const std::int64_t* index, void* y, std::int64_t rows, std::int64_t m,
                   std::int64_t k, int size, void* stream) {
  switch (size) {
    case 1: return gather_words<std::uint8_t>(x, index, y, rows, m, k, stream);
    case 2: return gather_words<std::uint16_t>(x, index, y, rows, m, k, stream);
    case 4: return gather_words<std::uint32_t>(x, index, y, rows, m, k, stream);
    default: return gather_words<std::uint64_t>(x, index, y, rows, m, k, stream);
  }
}

template <class T>
void launch_gather_backward(const T* grad, const std::int64_t* starts, const std::int64_t* order, T* result,
                            std::int64_t rows, std::int64_t m, std::int64_t k, void* stream) {
  GYRE_LAUNCH(gather_backward_kernel<T>, grid_for(rows * m), block, 0, stream, grad, starts, order, result,
              rows, m, k);
}

void launch_row_copy(const RowCopy& copy, void* stream) {
  const auto divides = [&](std::uintptr_t size) {
    const auto places =
        reinterpret_cast<std::uintptr_t>(copy.from) | reinterpret_cast<std::uintptr_t>(copy.to);
    const auto sizes = static_cast<std::uintptr_t>(copy.bytes | copy.from_stride | copy.to_stride);
    return (places | sizes) % size == 0;
  };
  if (divides(16)) return copy_words<Line>(copy, stream);
  if (divides(4)) return copy_words<std::uint32_t>(copy, stream);
  if (divides(2)) return copy_words<std::uint16_t>(copy, stream);
  return copy_words<std::uint8_t>(copy, stream);
}

#define GYRE_INSTANTIATE(T)                                                                                  \
  template void launch_gather_backward(const T*, const std::int64_t*, const std::int64_t*, T*, std::int64_t, \
                                       std::int64_t, std::int64_t, void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
GYRE_INSTANTIATE(prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
