#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <thread>
#include <type_traits>

#include "core/error.h"
#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/gemm_f64.h"
#include "tests/kernels/product_oracle.h"

namespace gyre::kernels::cpu {
namespace {

constexpr double gap = -12345;  // value of elements between the rows of C

template <class T>
std::vector<T> random_values(std::size_t count, std::uint64_t address) {
  RandomStream stream(7, Purpose::test, address);
  std::vector<T> values(count);
  for (T& x : values) x = static_cast<T>(stream.normal());
  return values;
}

std::size_t span_of(const StridedMatrices& x) {
  if (x.batch * x.rows * x.cols == 0) return 0;
  return static_cast<std::size_t>((x.batch - 1) * x.batch_stride + (x.rows - 1) * x.row +
                                  (x.cols - 1) * x.col + 1);
}

struct GemmCase {
  std::string name;
  GemmShape shape;
};

std::vector<GemmCase> gemm_cases() {
  const std::int64_t m = 37, n = 21, k = 29;
  std::vector<GemmCase> cases;
  const auto add = [&](std::string name, const GemmShape& s) { cases.push_back({std::move(name), s}); };
  add("dense", {1, m, n, k, 0, k, 1, 0, n, 1, 0, n});
  add("one element", {1, 1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1});
  add("one row", {1, 1, n, k, 0, 5, 1, 0, n, 1, 0, n + 3});
  add("one strided row", {1, 1, n, k, 0, 9, 3, 0, n, 1, 0, n});
  add("one column", {1, m, 1, k, 0, k, 1, 0, 1, 7, 0, 1});
  add("one column with gaps", {1, m, 1, k, 0, k, 1, 0, 4, 1, 0, 4});
  add("outer product", {1, m, n, 1, 0, 1, 1, 0, n, 1, 0, n});
  add("outer product of strided vectors", {1, m, n, 1, 0, 5, 3, 0, 1, 2, 0, n});
  add("a transposed", {1, m, n, k, 0, 1, m, 0, n, 1, 0, n});
  add("b transposed", {1, m, n, k, 0, k, 1, 0, 1, k, 0, n});
  add("both transposed", {1, m, n, k, 0, 1, m, 0, 1, k, 0, n});
  add("gaps everywhere", {1, m, n, k, 0, k + 3, 1, 0, n + 5, 1, 0, n + 2});
  add("transposed with gaps", {1, m, n, k, 0, 1, m + 3, 0, 1, k + 5, 0, n + 2});
  add("no unit stride", {1, m, n, k, 0, 4 * k, 4, 0, 3 * n, 3, 0, n});
  add("rows of a repeat", {1, m, n, k, 0, 0, 1, 0, n, 1, 0, n});
  add("columns of b repeat", {1, m, n, k, 0, k, 1, 0, 1, 0, 0, n});
  add("overlapping rows", {1, m, n, k, 0, 1, 1, 0, n, 1, 0, n});
  add("batch", {3, m, n, k, m * k, k, 1, k * n, n, 1, m * n, n});
  add("batch with gaps between matrices", {3, m, n, k, m * k + 11, k, 1, k * n + 7, n, 1, m * n + 5, n});
  add("batch, a transposed", {3, m, n, k, m * k, 1, m, k * n, n, 1, m * n, n});
  add("batch, b transposed", {3, m, n, k, m * k, k, 1, k * n, 1, k, m * n, n});
  add("interleaved batch", {3, m, n, k, k, 3 * k, 1, n, 3 * n, 1, n, 3 * n});
  add("batch interleaved element by element", {3, m, n, k, 1, 3 * k, 3, 1, 3 * n, 3, m * n, n});
  add("batch overlaps", {3, m, n, k, 2, k, 1, 1, n, 1, m * n, n});
  add("shared b", {3, m, n, k, m * k + 1, k, 1, 0, n, 1, m * n, n});
  add("shared b, joined rows", {3, m, n, k, m * k, k, 1, 0, n, 1, m * n, n});
  add("shared a", {3, m, n, k, 0, k, 1, k * n, n, 1, m * n, n});
  add("shared a without unit stride", {3, m, n, k, 0, 2 * k, 2, k * n, n, 1, m * n, n});
  add("all shared", {3, m, n, k, 0, k, 1, 0, n, 1, m * n, n});
  add("batch of rows", {4, 1, n, k, k, 3, 1, k * n, n, 1, n, 2});
  add("tall transposed a", {1, 33, 65, 1100, 0, 1, 33, 0, 65, 1, 0, 65});
  add("tall transposed a, batch", {2, 40, 48, 1200, 40 * 1200, 1, 40, 1200 * 48, 48, 1, 40 * 48, 48});
  add("tall transposed a with gaps, b transposed", {1, 40, 60, 1200, 0, 1, 44, 0, 1, 1203, 0, 64});
  add("two blocks of rows", {1, 600, 70, 130, 0, 130, 1, 0, 70, 1, 0, 70});
  return cases;
}

template <class T>
struct Data {
  explicit Data(const GemmShape& s, std::uint64_t address = 0)
      : a(random_values<T>(span_of(a_of(s)), 3 * address)),
        b(random_values<T>(span_of(b_of(s)), 3 * address + 1)),
        bias(random_values<T>(static_cast<std::size_t>(s.n), 3 * address + 2)),
        c(span_of(c_of(s)), static_cast<T>(gap)) {}
  std::vector<T> a, b, bias, c;
};

enum class Mode { plain, accumulate, bias };

/// Expected elements of C in order of batch, row and column, sums in Sum.
template <class Sum, class T>
std::vector<double> expected(const GemmShape& s, const Data<T>& data, Mode mode) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < s.batch; ++i) {
    auto c = plain_product<Sum>(
        s.m, s.n, s.k,
        [&](auto r, auto l) {
          return data.a[static_cast<std::size_t>(i * s.a_batch + r * s.a_row + l * s.a_col)];
        },
        [&](auto l, auto j) {
          return data.b[static_cast<std::size_t>(i * s.b_batch + l * s.b_row + j * s.b_col)];
        });
    for (std::size_t e = 0; e < c.size(); ++e) {
      const std::size_t column = e % static_cast<std::size_t>(s.n);
      if (mode == Mode::accumulate) c[e] += 0.5 * static_cast<double>(column);
      if (mode == Mode::bias) c[e] += static_cast<double>(data.bias[column]);
    }
    all.insert(all.end(), c.begin(), c.end());
  }
  return all;
}

template <class T>
std::size_t place(const GemmShape& s, std::int64_t i, std::int64_t r, std::int64_t j) {
  return static_cast<std::size_t>(i * s.c_batch + r * s.c_row + j);
}

/// Fills C: NaN where the product must write without reading, 0.5·column to add to.
template <class T>
void prepare(const GemmShape& s, std::vector<T>& c, Mode mode) {
  for (std::int64_t i = 0; i < s.batch; ++i)
    for (std::int64_t r = 0; r < s.m; ++r)
      for (std::int64_t j = 0; j < s.n; ++j)
        c[place<T>(s, i, r, j)] = mode == Mode::accumulate ? static_cast<T>(0.5 * static_cast<double>(j))
                                                           : std::numeric_limits<T>::quiet_NaN();
}

/// The elements of C in order; the gaps between them must be as they were.
template <class T>
std::vector<double> collect(const GemmShape& s, std::vector<T> c) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < s.batch; ++i)
    for (std::int64_t r = 0; r < s.m; ++r)
      for (std::int64_t j = 0; j < s.n; ++j) {
        values.push_back(static_cast<double>(c[place<T>(s, i, r, j)]));
        c[place<T>(s, i, r, j)] = static_cast<T>(gap);
      }
  for (const T x : c) EXPECT_EQ(x, static_cast<T>(gap)) << "a gap of C was written";
  return values;
}

template <class T, class Run>
void check(const GemmCase& test, Run run) {
  for (const Mode mode : {Mode::plain, Mode::accumulate, Mode::bias}) {
    SCOPED_TRACE(test.name + ", mode " + std::to_string(static_cast<int>(mode)));
    Data<T> data(test.shape);
    prepare(test.shape, data.c, mode);
    run(data, mode == Mode::accumulate, mode == Mode::bias ? data.bias.data() : nullptr);
    const auto values = collect(test.shape, data.c);
    const auto exact = expected<double>(test.shape, data, mode);
    if constexpr (std::is_same_v<T, double>)
      EXPECT_LE(relative_l2(values, exact), 1e-14);
    else
      expect_f32_accuracy(values, exact, expected<float>(test.shape, data, mode));
  }
}

TEST(Gemm, F32MatchesDotProductsForAllStrides) {
  for (const int threads : {1, 2}) {
    const ThreadCount scope(threads);
    for (const GemmCase& test : gemm_cases()) {
      check<float>(test, [&](Data<float>& d, bool accumulate, const float* bias) {
        gemm_f32(test.shape, d.a.data(), d.b.data(), d.c.data(), accumulate, bias);
      });
    }
  }
}

TEST(Gemm, F64MatchesDotProductsForAllStrides) {
  for (const int threads : {1, 2}) {
    const ThreadCount scope(threads);
    for (const GemmCase& test : gemm_cases()) {
      check<double>(test, [&](Data<double>& d, bool accumulate, const double* bias) {
        gemm_f64(test.shape, d.a.data(), d.b.data(), d.c.data(), accumulate, bias);
      });
    }
  }
}

TEST(Gemm, PackedMatchesDotProductsForAllStrides) {
  for (const int threads : {1, 2}) {
    const ThreadCount scope(threads);
    for (const std::int64_t hint : {1, 1024}) {
      for (const GemmCase& test : gemm_cases()) {
        const GemmShape& s = test.shape;
        check<float>(test, [&](Data<float>& d, bool accumulate, const float* bias) {
          const PackedGemm packed =
              PackedGemm::pack(s.batch, s.k, s.n, d.b.data(), s.b_batch, s.b_row, s.b_col, hint);
          EXPECT_GE(packed.bytes(), static_cast<std::size_t>(s.batch * s.k * s.n) * sizeof(float));
          d.b.assign(d.b.size(), std::numeric_limits<float>::quiet_NaN());  // must not be read any more
          packed.run(s.m, d.a.data(), s.a_batch, s.a_row, s.a_col, d.c.data(), s.c_batch, s.c_row, accumulate,
                     bias);
          d.b = Data<float>(s).b;
        });
      }
    }
  }
}

TEST(Gemm, EmptySums) {
  const GemmShape s{2, 3, 4, 0, 0, 0, 1, 0, 4, 1, 12, 4};
  const std::vector<float> bias = {1, 2, 3, 4};
  std::vector<float> c(24, std::numeric_limits<float>::quiet_NaN());
  gemm_f32(s, nullptr, nullptr, c.data());
  EXPECT_EQ(c, std::vector<float>(24, 0));
  gemm_f32(s, nullptr, nullptr, c.data(), false, bias.data());
  for (std::size_t i = 0; i < c.size(); ++i) EXPECT_EQ(c[i], bias[i % 4]);
  const std::vector<float> before = c;
  gemm_f32(s, nullptr, nullptr, c.data(), true);
  EXPECT_EQ(c, before);
  PackedGemm::pack(2, 0, 4, nullptr, 0, 4, 1).run(3, nullptr, 0, 0, 1, c.data(), 12, 4);
  EXPECT_EQ(c, std::vector<float>(24, 0));

  std::vector<double> d(24, std::numeric_limits<double>::quiet_NaN());
  gemm_f64(s, nullptr, nullptr, d.data());
  EXPECT_EQ(d, std::vector<double>(24, 0));
}

TEST(Gemm, EmptyResults) {
  for (const GemmShape& s :
       {GemmShape{0, 3, 4, 5, 15, 5, 1, 20, 4, 1, 12, 4}, GemmShape{1, 0, 4, 5, 0, 5, 1, 0, 4, 1, 0, 4},
        GemmShape{1, 3, 0, 5, 0, 5, 1, 0, 0, 1, 0, 0}}) {
    gemm_f32(s, nullptr, nullptr, nullptr);
    gemm_f64(s, nullptr, nullptr, nullptr);
    PackedGemm::pack(s.batch, s.k, s.n, std::vector<float>(20).data(), s.b_batch, s.b_row, s.b_col)
        .run(s.m, nullptr, s.a_batch, s.a_row, s.a_col, nullptr, s.c_batch, s.c_row);
    EXPECT_EQ(gemm_f32_kernel(s), "none");
  }
}

TEST(Gemm, RunsNoReferenceImplementation) {
  const auto is_reference = [](const GemmShape& s) { return gemm_f32_kernel(s).starts_with("ref"); };
  const GemmShape dense{1, 64, 64, 64, 0, 64, 1, 0, 64, 1, 0, 64};
  for (const GemmCase& test : gemm_cases())
    EXPECT_EQ(is_reference(test.shape), is_reference(dense)) << test.name;
}

TEST(Gemm, SameBitsInEveryRun) {
  for (const int threads : {1, 2}) {
    const ThreadCount scope(threads);
    for (const GemmShape& s :
         {GemmShape{1, 192, 64, 3328, 0, 1, 192, 0, 64, 1, 0, 64},  // sgemm, sums split over threads
          GemmShape{1, 17, 16, 9000, 0, 1, 17, 0, 16, 1, 0, 16},
          GemmShape{1, 300, 200, 777, 0, 777, 1, 0, 200, 1, 0, 200}}) {
      Data<float> data(s);
      gemm_f32(s, data.a.data(), data.b.data(), data.c.data());
      for (int i = 0; i < 20; ++i) {
        std::vector<float> again(data.c.size());
        gemm_f32(s, data.a.data(), data.b.data(), again.data());
        ASSERT_EQ(again, data.c);
      }
    }
  }
}

TEST(Gemm, ThreadsShareOnePack) {
  const GemmShape s{1, 70, 48, 40, 0, 40, 1, 0, 48, 1, 0, 48};
  const Data<float> data(s);
  const PackedGemm packed = PackedGemm::pack(1, s.k, s.n, data.b.data(), 0, s.n, 1);
  std::vector<std::vector<float>> results(4, data.c);
  std::vector<std::thread> threads;
  for (auto& c : results) {
    threads.emplace_back([&] {
      const SerialScope serial;
      for (int i = 0; i < 50; ++i) packed.run(s.m, data.a.data(), 0, s.k, 1, c.data(), 0, s.n);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& c : results) EXPECT_EQ(c, results[0]);
  expect_f32_accuracy(collect(s, results[0]), expected<double>(s, data, Mode::plain),
                      expected<float>(s, data, Mode::plain));
}

TEST(Gemm, WorksInsideParallelLoops) {
  const GemmShape s{1, 70, 90, 80, 0, 80, 1, 0, 90, 1, 0, 90};
  const Data<float> data(s);
  std::vector<std::vector<float>> results(4, data.c);
  const ThreadCount scope(2);
  parallel_for(0, 4, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      gemm_f32(s, data.a.data(), data.b.data(), results[static_cast<std::size_t>(i)].data());
  });
  for (const auto& c : results) {
    expect_f32_accuracy(collect(s, c), expected<double>(s, data, Mode::plain),
                        expected<float>(s, data, Mode::plain));
  }
}

TEST(Gemm, UnpackedRunIsAnError) {
  const PackedGemm none;
  EXPECT_FALSE(none.packed());
  EXPECT_THAT([&] { none.run(1, nullptr, 0, 1, 1, nullptr, 0, 1); },
              ::testing::ThrowsMessage<Error>("PackedGemm was run before it was packed"));
}

TEST(GemmShape, BatchJoinsRowsOnlyWhereRowsContinue) {
  const GemmShape joined = canonical({3, 4, 5, 6, 24, 6, 1, 0, 5, 1, 20, 5});
  EXPECT_EQ(joined.batch, 1);
  EXPECT_EQ(joined.m, 12);
  EXPECT_EQ(canonical({3, 4, 5, 6, 25, 6, 1, 0, 5, 1, 20, 5}).batch, 3);
  EXPECT_EQ(canonical({3, 4, 5, 6, 24, 6, 1, 30, 5, 1, 20, 5}).batch, 3);
}

}  // namespace
}  // namespace gyre::kernels::cpu
