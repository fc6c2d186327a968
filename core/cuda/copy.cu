#include "core/cuda/copy_launch.h"

#include <cstring>
#include <type_traits>

#include "core/cuda/prim.cuh"

namespace gyre::cuda {
namespace {

using prim::bf16_t;
using prim::half_t;

constexpr int threads = 256;
constexpr int per_thread = 4;  // elements
constexpr int tile = 32;       // edge of a transposed block

struct alignas(16) Wide {
  std::uint64_t words[2];
};

/// n / d for n < 2^31, and what remains.
GYRE_DEVICE std::uint32_t divide(std::uint32_t n, const Divisor& d, std::uint32_t& rest) {
  const auto high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(n) * d.factor >> 32);
  const std::uint32_t quotient = (high + n) >> d.shift;
  rest = n - quotient * d.value;
  return quotient;
}

struct Offsets {
  std::int64_t to, from;
};

/// Where element `i` of the first `rank` dimensions stands.
GYRE_DEVICE Offsets offsets_of(const CopyLayout& layout, int rank, std::uint32_t i) {
  Offsets result{0, 0};
  GYRE_UNROLL
  for (int dim = CopyLayout::max_rank - 1; dim >= 0; --dim) {
    if (dim >= rank) continue;
    std::uint32_t at = 0;
    i = divide(i, layout.extent[dim], at);
    result.to += at * layout.to[dim];
    result.from += at * layout.from[dim];
  }
  return result;
}

/// Calls f(i) for the elements of this thread.
template <class F>
GYRE_DEVICE void for_elements(std::uint32_t count, F f) {
  GYRE_UNROLL
  for (int k = 0; k < per_thread; ++k) {
    const std::uint32_t i = (blockIdx.x * per_thread + static_cast<unsigned>(k)) * threads + threadIdx.x;
    if (i < count) f(i);
  }
}

template <class T>
GYRE_KERNEL(threads)
copy_kernel(CopyLayout layout, T* to, const T* from) {
  for_elements(layout.count, [&](std::uint32_t i) {
    const Offsets at = offsets_of(layout, layout.rank, i);
    to[at.to] = from[at.from];
  });
}

template <class T>
GYRE_KERNEL(threads)
fill_kernel(CopyLayout layout, T* to, T value) {
  for_elements(layout.count, [&](std::uint32_t i) { to[offsets_of(layout, layout.rank, i).to] = value; });
}

/// Reads along rows and writes along columns, the last two dimensions, through a tile of shared memory.
template <class T>
GYRE_KERNEL(threads)
transpose_kernel(CopyLayout layout, T* to, const T* from, Divisor row_tiles, Divisor column_tiles) {
  GYRE_SHARED(T, block);
  const int row_dim = layout.rank - 2, column_dim = layout.rank - 1;
  std::uint32_t row = 0, column = 0;
  const std::uint32_t outer = divide(divide(blockIdx.x, column_tiles, column), row_tiles, row);
  const Offsets start = offsets_of(layout, row_dim, outer);
  const auto rows = static_cast<int>(layout.extent[row_dim].value - row * tile);
  const auto columns = static_cast<int>(layout.extent[column_dim].value - column * tile);
  const int x = static_cast<int>(threadIdx.x) % tile, y = static_cast<int>(threadIdx.x) / tile;
  const T* source =
      from + start.from + row * tile * layout.from[row_dim] + column * tile * layout.from[column_dim];
  T* target = to + start.to + row * tile * layout.to[row_dim] + column * tile * layout.to[column_dim];
  GYRE_UNROLL
  for (int c = y; c < tile; c += threads / tile) {
    if (x < rows && c < columns)
      block[c * (tile + 1) + x] = source[x * layout.from[row_dim] + c * layout.from[column_dim]];
  }
  prim::sync();
  GYRE_UNROLL
  for (int r = y; r < tile; r += threads / tile) {
    if (r < rows && x < columns)
      target[r * layout.to[row_dim] + x * layout.to[column_dim]] = block[x * (tile + 1) + r];
  }
}

template <class T>
struct Convert;  // from any type into T

template <class S>
GYRE_DEVICE S plain(S value) {
  return value;
}
GYRE_DEVICE float plain(half_t value) { return prim::to_float(value); }
GYRE_DEVICE float plain(bf16_t value) { return prim::to_float(value); }

template <>
struct Convert<double> {
  template <class S>
  static GYRE_DEVICE double from(S value) {
    return static_cast<double>(value);
  }
};
template <>
struct Convert<float> {
  template <class S>
  static GYRE_DEVICE float from(S value) {
    return static_cast<float>(value);
  }
};
template <>
struct Convert<half_t> {
  template <class S>
  static GYRE_DEVICE half_t from(S value) {
    return prim::to_half(static_cast<float>(value));
  }
};
template <>
struct Convert<bf16_t> {
  template <class S>
  static GYRE_DEVICE bf16_t from(S value) {
    return prim::to_bf16(static_cast<float>(value));
  }
};
template <>
struct Convert<std::int64_t> {
  static GYRE_DEVICE std::int64_t from(std::uint8_t value) { return value; }
  static GYRE_DEVICE std::int64_t from(std::int64_t value) { return value; }
  template <class S>
  static GYRE_DEVICE std::int64_t from(S value) {
    constexpr std::int64_t least = INT64_MIN, most = INT64_MAX;
    if (!(value > static_cast<S>(least))) return value == value ? least : 0;  // NaN: 0
    return value >= static_cast<S>(most) ? most : static_cast<std::int64_t>(value);
  }
};
template <>
struct Convert<std::uint8_t> {
  template <class S>
  static GYRE_DEVICE std::uint8_t from(S value) {
    if (!(value > S(0))) return 0;
    return value >= S(255) ? 255 : static_cast<std::uint8_t>(value);
  }
};

template <class D, class S>
GYRE_KERNEL(threads)
convert_kernel(CopyLayout layout, D* to, const S* from) {
  for_elements(layout.count, [&](std::uint32_t i) {
    const Offsets at = offsets_of(layout, layout.rank, i);
    to[at.to] = Convert<D>::from(plain(from[at.from]));
  });
}

prim::Grid grid_of(const CopyLayout& layout) { return {prim::blocks(layout.count, threads * per_thread)}; }

/// Calls f with a value of the unsigned type of so many bytes.
template <class F>
void with_size(int bytes, F f) {
  switch (bytes) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    case 8: return f(std::uint64_t{});
    default: return f(Wide{});
  }
}

/// Calls f with a value of the type that DType numbers so.
template <class F>
void with_type(int type, F f) {
  switch (type) {
    case 0: return f(double{});
    case 1: return f(float{});
    case 2: return f(half_t{});
    case 3: return f(bf16_t{});
    case 4: return f(std::int64_t{});
    default: return f(std::uint8_t{});
  }
}

}  // namespace

void launch_copy(const CopyLayout& layout, int element_bytes, void* to, const void* from, void* stream) {
  with_size(element_bytes, [&](auto element) {
    using T = decltype(element);
    GYRE_LAUNCH(copy_kernel<T>, grid_of(layout), threads, 0, stream, layout, static_cast<T*>(to),
                static_cast<const T*>(from));
  });
}

void launch_transpose(const CopyLayout& layout, int element_bytes, void* to, const void* from, void* stream) {
  const std::int64_t rows = prim::blocks(layout.extent[layout.rank - 2].value, tile);
  const std::int64_t columns = prim::blocks(layout.extent[layout.rank - 1].value, tile);
  std::int64_t outer = 1;
  for (int dim = 0; dim < layout.rank - 2; ++dim) outer *= layout.extent[dim].value;
  with_size(element_bytes, [&](auto element) {
    using T = decltype(element);
    GYRE_LAUNCH(transpose_kernel<T>, prim::Grid{outer * rows * columns}, threads,
                static_cast<std::int64_t>(tile * (tile + 1) * sizeof(T)), stream, layout, static_cast<T*>(to),
                static_cast<const T*>(from), divisor_of(static_cast<std::uint32_t>(rows)),
                divisor_of(static_cast<std::uint32_t>(columns)));
  });
}

void launch_convert(const CopyLayout& layout, void* to, int to_type, const void* from, int from_type,
                    void* stream) {
  with_type(to_type, [&](auto to_element) {
    with_type(from_type, [&](auto from_element) {
      using D = decltype(to_element);
      using S = decltype(from_element);
      if constexpr (!std::is_same_v<D, S>) {
        GYRE_LAUNCH((convert_kernel<D, S>), grid_of(layout), threads, 0, stream, layout, static_cast<D*>(to),
                    static_cast<const S*>(from));
      }
    });
  });
}

void launch_fill(const CopyLayout& layout, int element_bytes, void* to, const Pattern& value, void* stream) {
  with_size(element_bytes, [&](auto element) {
    using T = decltype(element);
    std::memcpy(&element, &value, sizeof element);
    GYRE_LAUNCH(fill_kernel<T>, grid_of(layout), threads, 0, stream, layout, static_cast<T*>(to), element);
  });
}

}  // namespace gyre::cuda
