#include <gmock/gmock.h>

#include "kernels/reduce.h"
#include "tests/kernels/op_test.h"

namespace gyre::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Sums by walking every element; `keep` marks the dimensions that stay.
std::vector<double> reference(const Tensor& x, const std::vector<bool>& keep) {
  std::int64_t size = 1;
  for (int dim = 0; dim < x.rank(); ++dim)
    if (keep[static_cast<std::size_t>(dim)]) size *= x.size(dim);
  std::vector<double> sums(static_cast<std::size_t>(size));
  const std::vector<double> values = x.to_vector();
  for (std::size_t flat = 0; flat < values.size(); ++flat) {
    std::int64_t rest = static_cast<std::int64_t>(flat), at = 0, step = 1;
    for (int dim = x.rank() - 1; dim >= 0; --dim) {
      const std::int64_t index = rest % x.size(dim);
      rest /= x.size(dim);
      if (!keep[static_cast<std::size_t>(dim)]) continue;
      at += index * step;
      step *= x.size(dim);
    }
    sums[static_cast<std::size_t>(at)] += values[flat];
  }
  return sums;
}

TEST(Sum, EverySubsetOfDimensions) {
  everywhere([] {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Tensor x = random({3, 4, 1, 5, 19}, dtype, 20);
      for (unsigned subset = 0; subset < 32; ++subset) {
        std::vector<int> dims;
        std::vector<bool> keep(5, true);
        Shape kept, dropped;
        std::int64_t count = 1;
        for (int dim = 4; dim >= 0; --dim)
          if ((subset >> dim & 1) != 0) {
            dims.push_back(dim % 2 == 0 ? dim : dim - 5);
            keep[static_cast<std::size_t>(dim)] = false;
            count *= x.size(dim);
          }
        for (int dim = 0; dim < 5; ++dim) {
          kept.push_back(keep[static_cast<std::size_t>(dim)] ? x.size(dim) : 1);
          if (keep[static_cast<std::size_t>(dim)]) dropped.push_back(x.size(dim));
        }
        SCOPED_TRACE(subset);
        std::vector<double> wanted = reference(x, keep);
        for (const Tensor& view : views(x)) {
          poison(kept.numel(), dtype);
          const Tensor y = sum(view, dims, true);
          EXPECT_EQ(y.shape(), kept);
          EXPECT_NE(y.storage(), view.storage());
          expect_values(y, wanted, tolerance(dtype) * std::sqrt(static_cast<double>(count)));
          EXPECT_EQ(sum(view, dims, false).shape(), dropped);
        }
        for (double& value : wanted) value /= static_cast<double>(count);
        expect_values(mean(x, dims, false), wanted, tolerance(dtype));
      }
    }
  });
}

TEST(Sum, LargeShapes) {
  // Rows, columns, few long rows, many slabs, long rows and ragged widths: every path of the loops.
  const std::pair<Shape, int> cases[] = {{{1000, 70}, 0},    {{70, 1000}, 1},   {{2, 50000}, 1},
                                         {{1, 100003}, 1},   {{50, 33, 21}, 1}, {{40, 5001}, 0},
                                         {{3, 700, 130}, 1}, {{3000, 3}, 0},    {{9000, 3}, 1},
                                         {{100000}, 0},      {{2, 9000}, 0},    {{1, 150, 4200}, 1}};
  everywhere([&] {
    for (const auto& [shape, dim] : cases) {
      const Tensor x = random(shape, DType::f32, 21);
      std::vector<bool> keep(static_cast<std::size_t>(shape.rank()), true);
      keep[static_cast<std::size_t>(dim)] = false;
      SCOPED_TRACE(shape.str() + " over " + std::to_string(dim));
      poison(x.numel() / x.size(dim), DType::f32);
      // A sum of n normal values grows, and rounds, like sqrt(n).
      expect_values(sum(x, std::vector<int>{dim}, false), reference(x, keep),
                    1e-6 * std::sqrt(static_cast<double>(x.size(dim))));
    }
  });
}

TEST(Sum, ManyEqualValuesStayAccurate) {
  constexpr std::int64_t count = 1 << 22;
  const double exact = static_cast<double>(0.1F) * count;
  const Tensor x = Tensor::full({count}, 0.1), columns = x.reshape({count / 8, 8});
  for (const int threads : {1, 2}) {
    const ThreadCount guard(threads);
    EXPECT_NEAR(sum(x, std::vector<int>{0}, false).item(), exact, 1e-6 * exact);
    for (const double value : sum(columns, std::vector<int>{0}, false).to_vector())
      EXPECT_NEAR(value, exact / 8, 1e-6 * exact / 8);
  }
}

TEST(Sum, RepeatsBitForBit) {
  const ThreadCount guard(2);
  const Tensor x = random({5000, 65}, DType::f32, 22);
  for (const auto& dims : {std::vector<int>{0}, std::vector<int>{1}, std::vector<int>{0, 1}})
    EXPECT_EQ(sum(x, dims, false).to_vector(), sum(x, dims, false).to_vector());
}

TEST(Sum, EmptyAndExpanded) {
  const Tensor none = Tensor::empty({0, 3}, DType::f64);
  poison(3, DType::f64);
  EXPECT_THAT(sum(none, std::vector<int>{0}, false).to_vector(), ElementsAre(0, 0, 0));
  EXPECT_EQ(sum(none, std::vector<int>{1}, false).shape(), Shape{0});
  EXPECT_EQ(sum(none, std::vector<int>{0, 1}, false).item(), 0);
  EXPECT_EQ(sum(Tensor::full({}, 7), {}, false).item(), 7);
  const Tensor wide = Tensor::arange(3, DType::f64).unsqueeze(1).expand({4, 3, 5});
  EXPECT_THAT(sum(wide, std::vector<int>{0, 2}, false).to_vector(), ElementsAre(0, 20, 40));
}

TEST(Sum, Errors) {
  const Tensor x = Tensor::ones({2, 3});
  EXPECT_THAT(message_of<ShapeError>([&] {
                sum(x, std::vector<int>{1, -1}, false);
              }),
              HasSubstr("dimension -1 of [2, 3] is named twice"));
  EXPECT_THROW(sum(x, std::vector<int>{2}, false), ShapeError);
  EXPECT_THROW(sum(x.to(DType::i64), std::vector<int>{0}, false), DTypeError);
  EXPECT_THAT(message_of<ShapeError>([&] {
                mean(Tensor::empty({0, 3}), std::vector<int>{0}, false);
              }),
              HasSubstr("no elements to average in [0, 3]"));
}

TEST(SumTo, InvertsBroadcasting) {
  const Shape shapes[] = {{4, 5, 6}, {5, 6}, {6}, {1}, {}, {1, 5, 1}, {4, 1, 6}, {5, 1}, {1, 1, 6}};
  everywhere([&] {
    const Tensor x = random({4, 5, 6}, DType::f64, 23);
    for (const Shape& shape : shapes) {
      std::vector<bool> keep(3);
      const int missing = 3 - shape.rank();
      for (int dim = missing; dim < 3; ++dim)
        keep[static_cast<std::size_t>(dim)] = shape[dim - missing] == x.size(dim);
      for (const Tensor& view : views(x)) {
        const Tensor y = sum_to(view, shape);
        EXPECT_EQ(y.shape(), shape);
        expect_values(y, reference(x, keep), 1e-13);
      }
    }
  });
  EXPECT_THAT(message_of<ShapeError>([] {
                sum_to(Tensor::ones({2, 3}), {2});
              }),
              HasSubstr("[2] does not broadcast to [2, 3]"));
  EXPECT_THROW(sum_to(Tensor::ones({3}), {1, 3}), ShapeError);
}

TEST(ArgmaxRows, FindsTheFirstMaximum) {
  const Tensor x =
      Tensor::from({1.0, 3.0, 3.0, -infinity, -infinity, -infinity, 5.0, nan, 9.0, nan, 1.0, 2.0}, {4, 3});
  EXPECT_THAT(argmax_rows(x), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(argmax_rows(x.slice(1, 1, 3)), ElementsAre(0, 0, 0, 1));
  EXPECT_TRUE(argmax_rows(Tensor::empty({0, 3})).empty());
  EXPECT_THROW(argmax_rows(Tensor::empty({3, 0})), ShapeError);
  EXPECT_THROW(argmax_rows(Tensor::ones({3})), ShapeError);
}

TEST(ArgmaxRows, ManyRows) {
  const ThreadCount guard(2);
  const Tensor x = random({5000, 10}, DType::f32, 24);
  const std::vector<std::int64_t> best = argmax_rows(x);
  for (std::int64_t i = 0; i < x.size(0); ++i)
    for (std::int64_t j = 0; j < 10; ++j)
      ASSERT_LE(x.at({i, j}), x.at({i, best[static_cast<std::size_t>(i)]}));
}

}  // namespace
}  // namespace gyre::kernels
