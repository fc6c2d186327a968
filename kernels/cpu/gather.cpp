#include "kernels/cpu/gather.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/parallel.h"

namespace gyre::kernels::cpu {
namespace {

constexpr std::int64_t grain = 16384;  // elements per task

std::int64_t rows_per_task(std::int64_t row) {
  return std::max<std::int64_t>(1, grain / std::max<std::int64_t>(1, row));
}

/// One part: bytes per outer row, and where they go within a row of the result.
struct Piece {
  const std::byte* data;
  std::size_t row_bytes, offset;
};

}  // namespace

void gather(const Tensor& x, const Tensor& index, Tensor& y) {
  const std::int64_t m = x.size(1), k = y.size(1);
  const auto* entries = index.data<std::int64_t>();
  dispatch_floating(x.dtype(), "gather", [&]<class T>(T) {
    const T* px = x.data<T>();
    T* py = y.mutable_data<T>();
    parallel_for(0, y.size(0), rows_per_task(k), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t b = first; b < last; ++b) {
        const T* from = px + b * m;
        T* to = py + b * k;
        for (std::int64_t j = 0; j < k; ++j) to[j] = from[entries[j]];
      }
    });
  });
}

void gather_backward(const Tensor& grad, const Tensor& index, Tensor& result) {
  const std::int64_t m = result.size(1), k = grad.size(1);
  const auto* entries = index.data<std::int64_t>();
  dispatch_floating(grad.dtype(), "gather_backward", [&]<class T>(T) {
    const T* pg = grad.data<T>();
    T* pr = result.mutable_data<T>();
    parallel_for(0, grad.size(0), rows_per_task(k + m), [&](std::int64_t first, std::int64_t last) {
      std::fill(pr + first * m, pr + last * m, T(0));
      for (std::int64_t b = first; b < last; ++b) {
        const T* from = pg + b * k;
        T* to = pr + b * m;
        for (std::int64_t j = 0; j < k; ++j) to[entries[j]] += from[j];
      }
    });
  });
}

void gather_rows(const Tensor& x, const Tensor& index, Tensor& y) {
  const std::int64_t length = x.size(1), count = y.size(1), width = y.size(2);
  const std::size_t row_bytes = static_cast<std::size_t>(width) * size_of(x.dtype());
  const auto* entries = index.data<std::int64_t>();
  const auto* px = static_cast<const std::byte*>(x.raw_data());
  auto* py = static_cast<std::byte*>(y.raw_mutable_data());
  parallel_for(0, y.size(0) * count, rows_per_task(width), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      const auto from = static_cast<std::size_t>(r / count * length + entries[r % count]);
      std::memcpy(py + static_cast<std::size_t>(r) * row_bytes, px + from * row_bytes, row_bytes);
    }
  });
}

void concat(std::span<const Tensor> parts, std::int64_t outer, Tensor& y) {
  const std::size_t element = size_of(y.dtype()), rows = static_cast<std::size_t>(outer);
  std::vector<Piece> pieces;
  std::size_t row_bytes = 0;
  for (const Tensor& part : parts) {
    const std::size_t bytes = static_cast<std::size_t>(part.numel()) / rows * element;
    pieces.push_back({static_cast<const std::byte*>(part.raw_data()), bytes, row_bytes});
    row_bytes += bytes;
  }
  auto* py = static_cast<std::byte*>(y.raw_mutable_data());
  const auto row_elements = static_cast<std::int64_t>(row_bytes / element);
  parallel_for(0, outer, rows_per_task(row_elements), [&](std::int64_t first, std::int64_t last) {
    for (auto r = static_cast<std::size_t>(first); r < static_cast<std::size_t>(last); ++r)
      for (const Piece& piece : pieces)
        std::memcpy(py + r * row_bytes + piece.offset, piece.data + r * piece.row_bytes, piece.row_bytes);
  });
}

}  // namespace gyre::kernels::cpu
