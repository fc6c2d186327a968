#include "core/cuda/copy_launch.h"

#include <numeric>

#include "core/dtype.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

using cuda::CopyLayout;

struct Dim {
  std::uint32_t extent;
  std::int64_t to, from;
};

CopyLayout layout_of(const std::vector<Dim>& dims) {
  CopyLayout layout;
  for (const Dim& dim : dims) {
    layout.extent[layout.rank] = cuda::divisor_of(dim.extent);
    layout.to[layout.rank] = dim.to;
    layout.from[layout.rank++] = dim.from;
    layout.count *= dim.extent;
  }
  return layout;
}

/// Calls f(to, from) for every element, by plain counting.
template <class F>
void walk(const std::vector<Dim>& dims, F f, std::size_t at = 0, std::int64_t to = 0, std::int64_t from = 0) {
  if (at == dims.size()) return f(static_cast<std::size_t>(to), static_cast<std::size_t>(from));
  for (std::uint32_t i = 0; i < dims[at].extent; ++i)
    walk(dims, f, at + 1, to + i * dims[at].to, from + i * dims[at].from);
}

struct Sizes {
  std::size_t to = 0, from = 0;
};
Sizes sizes_of(const std::vector<Dim>& dims) {
  Sizes sizes;
  walk(dims, [&](std::size_t to, std::size_t from) {
    sizes.to = std::max(sizes.to, to + 1);
    sizes.from = std::max(sizes.from, from + 1);
  });
  return sizes;
}

template <class T>
std::vector<T> counting(std::size_t n) {
  std::vector<T> values(n);
  std::iota(values.begin(), values.end(), T(1));
  return values;
}

template <class T, class Launch>
void check_copy(const std::vector<Dim>& dims, Launch launch) {
  const Sizes sizes = sizes_of(dims);
  const auto x = counting<T>(sizes.from);
  const std::vector<T> before(sizes.to, T(0));
  std::vector<T> wanted = before;
  walk(dims, [&](std::size_t to, std::size_t from) { wanted[to] = x[from]; });
  Buffer<T> in(x), out(before);
  launch(layout_of(dims), static_cast<int>(sizeof(T)), out.data(), in.data(), nullptr);
  EXPECT_EQ(out.values(), wanted);
}

TEST(CopyKernels, Divisors) {
  for (const std::uint32_t d : {1U, 2U, 3U, 7U, 64U, 65U, 641U, 65537U, 1U << 29, (1U << 30) - 1, 1U << 30}) {
    const cuda::Divisor divisor = cuda::divisor_of(d);
    for (const std::uint64_t n :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{d} - 1, std::uint64_t{d},
          std::uint64_t{5} * d - 1, std::uint64_t{5} * d, (std::uint64_t{1} << 31) - 1}) {
      if (n >> 31 != 0) continue;
      const std::uint64_t high = n * divisor.factor >> 32;
      EXPECT_EQ((high + n) >> divisor.shift, n / d) << n << " / " << d;
    }
  }
}

TEST(CopyKernels, Strided) {
  const std::vector<std::vector<Dim>> cases{
      {},
      {{1000, 1, 2}},
      {{5, 300, 0}, {7, 40, 1}, {13, 2, 9}},
      {{2, 48, 3}, {2, 24, 12}, {2, 12, 1}, {2, 6, 6}, {3, 2, 50}, {2, 1, 24}},
  };
  in_all_schedules([&] {
    for (const auto& dims : cases) {
      check_copy<std::uint8_t>(dims, cuda::launch_copy);
      check_copy<std::uint16_t>(dims, cuda::launch_copy);
      check_copy<std::uint32_t>(dims, cuda::launch_copy);
      check_copy<std::uint64_t>(dims, cuda::launch_copy);
    }
    // 16 bytes an element.
    Buffer<std::uint64_t> in(counting<std::uint64_t>(12)), out(std::vector<std::uint64_t>(6, 0));
    cuda::launch_copy(layout_of({{3, 1, 2}}), 16, out.data(), in.data(), nullptr);
    EXPECT_EQ(out.values(), (std::vector<std::uint64_t>{1, 2, 5, 6, 9, 10}));
  });
}

TEST(CopyKernels, Transposed) {
  const std::vector<std::vector<Dim>> cases{
      {{32, 32, 1}, {32, 1, 32}},
      {{33, 70, 1}, {70, 1, 40}},
      {{3, 1000, 8}, {2, 500, 700}, {8, 60, 1}, {45, 1, 24}},
  };
  in_all_schedules([&] {
    for (const auto& dims : cases) {
      check_copy<std::uint8_t>(dims, cuda::launch_transpose);
      check_copy<std::uint16_t>(dims, cuda::launch_transpose);
      check_copy<std::uint32_t>(dims, cuda::launch_transpose);
      check_copy<std::uint64_t>(dims, cuda::launch_transpose);
    }
  });
}

TEST(CopyKernels, Fills) {
  const std::vector<Dim> dims{{3, 20, 0}, {11, 1, 0}};
  in_all_schedules([&] {
    cuda::Pattern pattern;
    pattern.words[0] = 0x0807060504030201;
    const auto check = [&]<class T>(T value) {
      std::vector<T> wanted(51, T(9));
      walk(dims, [&](std::size_t to, std::size_t) { wanted[to] = value; });
      Buffer<T> out(std::vector<T>(51, T(9)));
      cuda::launch_fill(layout_of(dims), static_cast<int>(sizeof(T)), out.data(), pattern, nullptr);
      EXPECT_EQ(out.values(), wanted);
    };
    check(std::uint8_t{0x01});
    check(std::uint16_t{0x0201});
    check(std::uint32_t{0x04030201});
    check(std::uint64_t{0x0807060504030201});
  });
}

TEST(CopyKernels, Converts) {
  const std::vector<Dim> dims{{40, 1, 3}, {9, 50, 130}};
  in_all_schedules([&] {
    const Sizes sizes = sizes_of(dims);
    std::vector<float> x(sizes.from);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.37F - 60.0F;
    std::vector<Half> halves(sizes.to);
    std::vector<std::int64_t> integers(sizes.to, 5);
    walk(dims, [&](std::size_t to, std::size_t from) {
      halves[to] = Half::nearest(x[from]);
      integers[to] = static_cast<std::int64_t>(x[from]);
    });
    Buffer<float> in(x);
    Buffer<std::uint16_t> half(std::vector<std::uint16_t>(sizes.to, 0));
    Buffer<std::int64_t> integer(std::vector<std::int64_t>(sizes.to, 5));
    const auto number = [](DType dtype) { return static_cast<int>(dtype); };
    cuda::launch_convert(layout_of(dims), half.data(), number(DType::f16), in.data(), number(DType::f32),
                         nullptr);
    cuda::launch_convert(layout_of(dims), integer.data(), number(DType::i64), in.data(), number(DType::f32),
                         nullptr);
    EXPECT_EQ(integer.values(), integers);
    const std::vector<std::uint16_t> bits = half.values();
    for (std::size_t i = 0; i < sizes.to; ++i) ASSERT_EQ(bits[i], halves[i].bits) << i;
  });
}

}  // namespace
}  // namespace gyre::simt
