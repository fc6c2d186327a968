#include "core/cuda/copy.h"

#include <cstdint>
#include <cstring>

#include "core/copy.h"
#include "core/cuda/copy_launch.h"
#include "core/cuda/runtime.h"
#include "core/profile.h"

namespace gyre::cuda {
namespace {

using detail::CopyDim;
using detail::CopyDims;

constexpr std::int64_t most_elements = std::int64_t{1} << 30;  // of one launch
constexpr std::int64_t least_transposed = 8;                   // extents worth a tile

std::int64_t count_of(const CopyDims& dims) {
  std::int64_t count = 1;
  for (int i = 0; i < dims.rank; ++i) count *= dims[i].extent;
  return count;
}

CopyLayout layout_of(const CopyDims& dims) {
  CopyLayout layout;
  layout.rank = dims.rank;
  layout.count = static_cast<std::uint32_t>(count_of(dims));
  for (int i = 0; i < dims.rank; ++i) {
    layout.extent[i] = divisor_of(static_cast<std::uint32_t>(dims[i].extent));
    layout.to[i] = dims[i].to;
    layout.from[i] = dims[i].from;
  }
  return layout;
}

/// Calls f(dims, to, from) for parts of at most 2^30 elements; to and from are offsets in elements.
template <class F>
void in_parts(const CopyDims& dims, F&& f, std::int64_t to = 0, std::int64_t from = 0) {
  if (count_of(dims) <= most_elements) return f(dims, to, from);
  CopyDims part = dims;
  int widest = 0;
  for (int i = 1; i < dims.rank; ++i) {
    if (dims[i].extent > dims[widest].extent) widest = i;
  }
  const CopyDim whole = dims[widest];
  const std::int64_t half = whole.extent / 2;
  part[widest].extent = half;
  in_parts(part, f, to, from);
  part[widest].extent = whole.extent - half;
  in_parts(part, f, to + half * whole.to, from + half * whole.from);
}

bool is_aligned(const void* data, std::int64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0;
}

/// Merges two neighbours into one element of twice the size as long as strides and addresses allow. `fill`:
/// the source has no address.
std::int64_t widen_elements(CopyDims& dims, std::int64_t bytes, const void* to, const void* from, bool fill) {
  if (dims.rank == 0) return bytes;
  CopyDim& inner = dims[dims.rank - 1];
  if (inner.to != 1 || (inner.from != 1 && !fill)) return bytes;
  for (; bytes < 16; bytes *= 2) {
    bool even = inner.extent % 2 == 0 && is_aligned(to, 2 * bytes) && (fill || is_aligned(from, 2 * bytes));
    for (int i = 0; i + 1 < dims.rank; ++i) even = even && dims[i].to % 2 == 0 && dims[i].from % 2 == 0;
    if (!even) break;
    inner.extent /= 2;
    for (int i = 0; i + 1 < dims.rank; ++i) {
      dims[i].to /= 2;
      dims[i].from /= 2;
    }
  }
  return bytes;
}

/// Moves the dimension along which the source is dense next to the innermost one, if tiles pay there.
bool order_for_transpose(CopyDims& dims) {
  const int last = dims.rank - 1;
  if (last < 1 || dims[last].to != 1 || dims[last].from == 1 || dims[last].extent < least_transposed)
    return false;
  for (int i = 0; i < last; ++i) {
    if (dims[i].from != 1 || dims[i].extent < least_transposed) continue;
    const CopyDim rows = dims[i];
    for (int j = i; j + 1 < last; ++j) dims[j] = dims[j + 1];
    dims[last - 1] = rows;
    return true;
  }
  return false;
}

template <class T>
T* advance(T* data, std::int64_t elements, std::int64_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(data) +
                              static_cast<std::uintptr_t>(elements * bytes));
}

}  // namespace

void strided_copy(int index, const Shape& shape, void* to, DType to_dtype, const Shape& to_strides,
                  const void* from, DType from_dtype, const Shape& from_strides) {
  if (shape.numel() == 0) return;
  const ProfileScope scope("copy");
  void* const stream = compute_stream(index);
  CopyDims dims = detail::merge_dims(shape, to_strides, from_strides);
  auto bytes = static_cast<std::int64_t>(size_of(to_dtype));
  if (to_dtype != from_dtype) {
    const auto from_bytes = static_cast<std::int64_t>(size_of(from_dtype));
    return in_parts(dims, [&](const CopyDims& part, std::int64_t to_offset, std::int64_t from_offset) {
      launch_convert(layout_of(part), advance(to, to_offset, bytes), static_cast<int>(to_dtype),
                     advance(from, from_offset, from_bytes), static_cast<int>(from_dtype), stream);
    });
  }
  const bool dense = dims.rank == 0 || (dims.rank == 1 && dims[0].to == 1 && dims[0].from == 1);
  if (dense) return copy_async(to, from, static_cast<std::size_t>(count_of(dims) * bytes), stream);
  const bool transposed = order_for_transpose(dims);
  if (!transposed) bytes = widen_elements(dims, bytes, to, from, false);
  in_parts(dims, [&](const CopyDims& part, std::int64_t to_offset, std::int64_t from_offset) {
    const auto launch = transposed ? launch_transpose : launch_copy;
    launch(layout_of(part), static_cast<int>(bytes), advance(to, to_offset, bytes),
           advance(from, from_offset, bytes), stream);
  });
}

void strided_fill(int index, const Shape& shape, void* to, DType dtype, const Shape& strides, double value) {
  if (shape.numel() == 0) return;
  const ProfileScope scope("fill");
  const auto size = size_of(dtype);
  Pattern pattern;
  auto* const text = reinterpret_cast<std::byte*>(&pattern);
  detail::strided_copy({}, text, dtype, {}, &value, DType::f64, {});
  for (std::size_t at = size; at < sizeof pattern; at += size) std::memcpy(text + at, text, size);
  CopyDims dims = detail::merge_dims(shape, strides, Shape::filled(shape.rank(), 0));
  const std::int64_t bytes = widen_elements(dims, static_cast<std::int64_t>(size), to, nullptr, true);
  in_parts(dims, [&](const CopyDims& part, std::int64_t offset, std::int64_t) {
    launch_fill(layout_of(part), static_cast<int>(bytes), advance(to, offset, bytes), pattern,
                compute_stream(index));
  });
}

}  // namespace gyre::cuda
