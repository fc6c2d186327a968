#include "core/copy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/half.h"
#include "core/parallel.h"
#include "core/profile.h"

namespace gyre::detail {
namespace {

constexpr std::int64_t grain = 32768;  // elements per task
constexpr std::int64_t tile = 32;      // edge of a transposed block

using Dim = CopyDim;

// Dimensions from outer to inner; the last two form the rows and columns of the inner loops.
struct Plan {
  std::array<Dim, Shape::max_rank + 2> dims;
  int rank = 0;
  bool transposed = false;  // the source is denser along rows than along columns

  Dim& operator[](int i) { return dims[static_cast<std::size_t>(i)]; }
  const Dim& operator[](int i) const { return dims[static_cast<std::size_t>(i)]; }
};

Plan make_plan(const Shape& shape, const Shape& to, const Shape& from) {
  const CopyDims merged = merge_dims(shape, to, from);
  Plan plan;
  plan.rank = 2;  // two outer dimensions of extent 1 stand in for missing rows and columns
  for (int i = 0; i < merged.rank; ++i) plan[plan.rank++] = merged[i];
  const int column = plan.rank - 1;
  int row = column - 1;
  std::int64_t least = std::abs(plan[column].from);
  for (int i = 0; i < column; ++i) {
    const std::int64_t stride = std::abs(plan[i].from);
    if (plan[i].extent > 1 && stride > 0 && stride < least) {
      least = stride;
      row = i;
      plan.transposed = true;
    }
  }
  std::rotate(plan.dims.begin() + row, plan.dims.begin() + row + 1, plan.dims.begin() + column);
  return plan;
}

template <class D, class S>
D convert(S value) {
  using Limits = std::numeric_limits<D>;
  if constexpr (std::is_same_v<D, S>) {
    return value;
  } else if constexpr (std::is_same_v<S, Half> || std::is_same_v<S, BFloat16>) {
    return convert<D>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<D, Half> || std::is_same_v<D, BFloat16>) {
    return D::nearest(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<D>) {
    return static_cast<D>(value);
  } else if constexpr (std::is_floating_point_v<S>) {
    if (!(value > static_cast<S>(Limits::min()))) return std::isnan(value) ? D{0} : Limits::min();
    return value >= static_cast<S>(Limits::max()) ? Limits::max() : static_cast<D>(value);
  } else {
    return static_cast<D>(std::clamp<std::int64_t>(static_cast<std::int64_t>(value),
                                                   static_cast<std::int64_t>(Limits::min()),
                                                   static_cast<std::int64_t>(Limits::max())));
  }
}

template <class D, class S>
void copy_row(D* to, std::int64_t to_step, const S* from, std::int64_t from_step, std::int64_t count) {
  if (to_step == 1 && from_step == 1) {
    if constexpr (std::is_same_v<D, S>) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(D));
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = convert<D>(from[i]);
    }
  } else if (to_step == 1 && from_step == 0) {
    std::fill_n(to, count, convert<D>(*from));
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i * to_step] = convert<D>(from[i * from_step]);
  }
}

// 4 x 4 floats, both with contiguous rows.
void transpose_4x4(float* to, std::int64_t to_step, const float* from, std::int64_t from_step) {
  using Vector = float __attribute__((vector_size(16)));
  std::array<Vector, 4> in, out;
  for (std::size_t i = 0; i < 4; ++i)
    std::memcpy(&in[i], from + static_cast<std::int64_t>(i) * from_step, 16);
  const Vector a = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
  const Vector b = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
  const Vector c = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
  const Vector d = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
  out[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  out[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  out[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  out[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
  for (std::size_t i = 0; i < 4; ++i) std::memcpy(to + static_cast<std::int64_t>(i) * to_step, &out[i], 16);
}

// Through a small buffer: each cache line of source and destination is touched once, whatever the strides.
template <class D, class S>
void copy_transposed(D* to, const S* from, const Dim& row, const Dim& column, std::int64_t rows,
                     std::int64_t columns) {
  std::array<D, tile * tile> buffer;
  const bool dense = column.to == 1 && row.to == columns;
  D* const block = dense ? to : buffer.data();
  std::int64_t done = 0;
  if constexpr (std::is_same_v<D, float> && std::is_same_v<S, float>) {
    for (; row.from == 1 && rows % 4 == 0 && done + 4 <= columns; done += 4) {
      for (std::int64_t r = 0; r < rows; r += 4) {
        transpose_4x4(block + r * columns + done, columns, from + done * column.from + r, column.from);
      }
    }
  }
  for (std::int64_t c = done; c < columns; ++c) {
    D* target = block + c;
    const S* source = from + c * column.from;
    for (std::int64_t r = 0; r < rows; ++r) target[r * columns] = convert<D>(source[r * row.from]);
  }
  for (std::int64_t r = 0; r < rows && !dense; ++r) {
    copy_row(to + r * row.to, column.to, buffer.data() + r * columns, 1, columns);
  }
}

template <class D, class S>
void run(const Plan& plan, D* to, const S* from) {
  const int outer = plan.rank - 2;
  const Dim& row = plan[outer];
  const Dim& column = plan[outer + 1];
  std::int64_t columns = std::min(column.extent, grain);
  std::int64_t rows = std::min(row.extent, std::max<std::int64_t>(1, grain / columns));
  if (plan.transposed) {
    columns = std::min(column.extent, std::max(tile, tile * tile / row.extent));
    rows = std::min(row.extent, tile * tile / columns);
  }
  std::array<std::int64_t, Shape::max_rank + 2> counts{};
  std::int64_t blocks = 1;
  for (int i = 0; i < plan.rank; ++i) {
    const std::int64_t size = i < outer ? 1 : i == outer ? rows : columns;
    counts[static_cast<std::size_t>(i)] = (plan[i].extent + size - 1) / size;
    blocks *= counts[static_cast<std::size_t>(i)];
  }
  parallel_for(0, blocks, std::max<std::int64_t>(1, grain / (rows * columns)),
               [&](std::int64_t first, std::int64_t last) {
                 std::array<std::int64_t, Shape::max_rank + 2> index{};
                 std::int64_t rest = first;
                 for (int i = plan.rank - 1; i >= 0; --i) {
                   const auto k = static_cast<std::size_t>(i);
                   index[k] = rest % counts[k];
                   rest /= counts[k];
                 }
                 for (std::int64_t block = first; block < last; ++block) {
                   const std::int64_t r = index[static_cast<std::size_t>(outer)] * rows;
                   const std::int64_t c = index[static_cast<std::size_t>(outer) + 1] * columns;
                   std::int64_t to_offset = r * row.to + c * column.to;
                   std::int64_t from_offset = r * row.from + c * column.from;
                   for (int i = 0; i < outer; ++i) {
                     to_offset += index[static_cast<std::size_t>(i)] * plan[i].to;
                     from_offset += index[static_cast<std::size_t>(i)] * plan[i].from;
                   }
                   const std::int64_t block_rows = std::min(rows, row.extent - r);
                   const std::int64_t block_columns = std::min(columns, column.extent - c);
                   if (plan.transposed) {
                     copy_transposed(to + to_offset, from + from_offset, row, column, block_rows,
                                     block_columns);
                   } else {
                     for (std::int64_t i = 0; i < block_rows; ++i) {
                       copy_row(to + to_offset + i * row.to, column.to, from + from_offset + i * row.from,
                                column.from, block_columns);
                     }
                   }
                   for (int i = plan.rank - 1; i >= 0; --i) {
                     const auto k = static_cast<std::size_t>(i);
                     if (++index[k] < counts[k]) break;
                     index[k] = 0;
                   }
                 }
               });
}

template <class D>
void run_from(const Plan& plan, D* to, const void* from, DType dtype) {
  switch (dtype) {
    case DType::f64: return run(plan, to, static_cast<const double*>(from));
    case DType::f32: return run(plan, to, static_cast<const float*>(from));
    case DType::i64: return run(plan, to, static_cast<const std::int64_t*>(from));
    case DType::u8: return run(plan, to, static_cast<const std::uint8_t*>(from));
    case DType::f16: return run(plan, to, static_cast<const Half*>(from));
    case DType::bf16: return run(plan, to, static_cast<const BFloat16*>(from));
  }
}

}  // namespace

CopyDims merge_dims(const Shape& shape, const Shape& to, const Shape& from) {
  CopyDims sorted, merged;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    // Insertion by falling stride of the destination, so that writes run forward.
    int at = sorted.rank++;
    for (; at > 0 && std::abs(sorted[at - 1].to) < std::abs(to[i]); --at) sorted[at] = sorted[at - 1];
    sorted[at] = {shape[i], to[i], from[i]};
  }
  for (int i = 0; i < sorted.rank; ++i) {
    const CopyDim& d = sorted[i];
    const int last = merged.rank - 1;
    if (last >= 0 && merged[last].to == d.to * d.extent && merged[last].from == d.from * d.extent) {
      merged[last] = {merged[last].extent * d.extent, d.to, d.from};
    } else {
      merged[merged.rank++] = d;
    }
  }
  return merged;
}

void strided_copy(const Shape& shape, void* to, DType to_dtype, const Shape& to_strides, const void* from,
                  DType from_dtype, const Shape& from_strides) {
  if (shape.numel() == 0) return;
  const ProfileScope scope("copy");
  const Plan plan = make_plan(shape, to_strides, from_strides);
  switch (to_dtype) {
    case DType::f64: return run_from(plan, static_cast<double*>(to), from, from_dtype);
    case DType::f32: return run_from(plan, static_cast<float*>(to), from, from_dtype);
    case DType::i64: return run_from(plan, static_cast<std::int64_t*>(to), from, from_dtype);
    case DType::u8: return run_from(plan, static_cast<std::uint8_t*>(to), from, from_dtype);
    case DType::f16: return run_from(plan, static_cast<Half*>(to), from, from_dtype);
    case DType::bf16: return run_from(plan, static_cast<BFloat16*>(to), from, from_dtype);
  }
}

}  // namespace gyre::detail
