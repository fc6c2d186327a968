#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "kernels/matmul.h"
#include "tests/kernels/product_oracle.h"

namespace gyre::kernels {
namespace {

using ::testing::ThrowsMessage;

/// Element by element from the views themselves.
template <class Sum>
std::vector<double> oracle(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  const Tensor left = transpose_a ? a.transpose(-2, -1) : a, right = transpose_b ? b.transpose(-2, -1) : b;
  const std::int64_t m = left.size(-2), k = left.size(-1), n = right.size(-1);
  const auto x = left.to_vector(), y = right.to_vector();
  std::vector<double> all;
  const std::int64_t batch = m * k > 0 ? left.numel() / (m * k) : 1;
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::int64_t shift = b.rank() == 2 ? 0 : i * k * n;
    const auto c = plain_product<Sum>(
        m, n, k, [&](auto r, auto l) { return x[static_cast<std::size_t>((i * m + r) * k + l)]; },
        [&](auto l, auto j) { return y[static_cast<std::size_t>(shift + l * n + j)]; });
    all.insert(all.end(), c.begin(), c.end());
  }
  return all;
}

void check(const std::string& name, const Tensor& a, const Tensor& b, bool transpose_a = false,
           bool transpose_b = false) {
  for (const int threads : {1, 2}) {
    const ThreadCount scope(threads);
    SCOPED_TRACE(name + ", threads " + std::to_string(threads));
    poison(matmul(a, b, transpose_a, transpose_b).numel(), a.dtype());
    const Tensor y = matmul(a, b, transpose_a, transpose_b);
    EXPECT_EQ(y.dtype(), a.dtype());
    EXPECT_TRUE(y.is_contiguous());
    const auto exact = oracle<double>(a, b, transpose_a, transpose_b);
    if (a.dtype() == DType::f64)
      EXPECT_LE(relative_l2(y.to_vector(), exact), 1e-14);
    else
      expect_f32_accuracy(y.to_vector(), exact, oracle<float>(a, b, transpose_a, transpose_b));
  }
}

class Matmul : public ::testing::TestWithParam<DType> {
 protected:
  Tensor draw(const Shape& shape) { return random(shape, GetParam(), seed_++); }

 private:
  std::uint64_t seed_ = 100;
};

TEST_P(Matmul, PlainAndTransposed) {
  for (const auto& [m, n, k] : {std::array{1, 1, 1}, {5, 7, 3}, {64, 48, 80}, {130, 17, 33}}) {
    check("plain", draw({m, k}), draw({k, n}));
    check("a transposed", draw({k, m}), draw({k, n}), true, false);
    check("b transposed", draw({m, k}), draw({n, k}), false, true);
    check("both transposed", draw({k, m}), draw({n, k}), true, true);
  }
}

TEST_P(Matmul, Batches) {
  check("batch", draw({3, 10, 6}), draw({3, 6, 9}));
  check("two batch dimensions", draw({2, 3, 10, 6}), draw({2, 3, 6, 9}));
  check("batch, transposed", draw({3, 6, 10}), draw({3, 9, 6}), true, true);
  check("one b for all", draw({2, 3, 10, 6}), draw({6, 9}));
  check("one b for all, transposed a", draw({3, 6, 10}), draw({6, 9}), true, false);
  check("batch of one", draw({1, 1, 10, 6}), draw({1, 1, 6, 9}));
}

TEST_P(Matmul, Views) {
  check("permuted heads", draw({2, 7, 3, 8}).permute({0, 2, 1, 3}), draw({2, 7, 3, 8}).permute({0, 2, 3, 1}));
  const Tensor qkv = draw({2, 7, 3, 4, 8});
  check("slices of one tensor", qkv.select(2, 0).transpose(1, 2), qkv.select(2, 1).transpose(1, 2), false,
        true);
  check("columns", draw({9, 20}).slice(1, 3, 11), draw({20, 30}).slice(0, 4, 12).slice(1, 7, 18));
  check("every third column", draw({9, 24}).slice(1, 0, 24, 3), draw({8, 5}));
  check("every second row", draw({18, 8}).slice(0, 1, 18, 2), draw({16, 5}).slice(0, 0, 16, 2));
  check("every second matrix", draw({6, 4, 8}).slice(0, 0, 6, 2), draw({3, 8, 5}));
  check("expanded a", draw({1, 8}).expand({9, 8}), draw({8, 5}));
  check("expanded batch of b", draw({3, 9, 8}), draw({1, 8, 5}).expand({3, 8, 5}));
  check("expanded batches", draw({1, 9, 8}).expand({3, 9, 8}), draw({1, 8, 5}).expand({3, 8, 5}));
  check("expanded inner batch", draw({2, 1, 9, 8}).expand({2, 3, 9, 8}), draw({2, 3, 8, 5}));
}

TEST_P(Matmul, EmptyTensors) {
  EXPECT_EQ(matmul(draw({0, 3}), draw({3, 4})).shape(), (Shape{0, 4}));
  EXPECT_EQ(matmul(draw({2, 0, 3}), draw({2, 3, 4})).shape(), (Shape{2, 0, 4}));
  EXPECT_EQ(matmul(draw({0, 2, 3}), draw({3, 4})).shape(), (Shape{0, 2, 4}));
  EXPECT_EQ(matmul(draw({2, 3}), draw({3, 0})).shape(), (Shape{2, 0}));
  const Tensor zeros = matmul(draw({5, 2, 0}), draw({5, 0, 3}));
  EXPECT_EQ(zeros.shape(), (Shape{5, 2, 3}));
  EXPECT_EQ(zeros.to_vector(), std::vector<double>(30, 0));
}

INSTANTIATE_TEST_SUITE_P(Types, Matmul, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(MatmulErrors, NameShapesAndTypes) {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({4, 5});
  EXPECT_THAT([&] { matmul(a, b); },
              ThrowsMessage<ShapeError>("matmul: inner sizes 3 and 4 of [2, 3] and [4, 5] differ"));
  EXPECT_THAT([&] { matmul(a, b, true, true); },
              ThrowsMessage<ShapeError>(
                  "matmul: inner sizes 2 and 5 of [2, 3] transposed and [4, 5] transposed differ"));
  EXPECT_THAT(
      [&] {
        matmul(Tensor::zeros({2, 2, 3}), Tensor::zeros({5, 3, 4}));
      },
      ThrowsMessage<ShapeError>("matmul: leading dimensions of [2, 2, 3] and [5, 3, 4] differ"));
  EXPECT_THROW(matmul(Tensor::zeros({2, 3}), Tensor::zeros({5, 3, 4})), ShapeError);
  EXPECT_THAT([&] { matmul(Tensor::zeros({3}), b); },
              ThrowsMessage<ShapeError>("matmul takes tensors of rank 2 or more, not [3] and [4, 5]"));
  EXPECT_THROW(matmul(a, Tensor::zeros({3, 2}, DType::f64)), DTypeError);
  EXPECT_THAT(
      [&] {
        matmul(Tensor::zeros({2, 2}, DType::i64), Tensor::zeros({2, 2}, DType::i64));
      },
      ThrowsMessage<DTypeError>("matmul takes f32 or f64, not i64"));
}

}  // namespace
}  // namespace gyre::kernels
