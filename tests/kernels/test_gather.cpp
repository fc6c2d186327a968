#include <gmock/gmock.h>

#include "kernels/gather.h"
#include "tests/kernels/op_test.h"

namespace gyre::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

double dot(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector(), y = b.to_vector();
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

TEST(Gather, PicksColumns) {
  const Tensor index = Tensor::from<std::int64_t>({4, 0, 0, 2, 9, 9, 1}, {7});
  for (const int threads : {1, 2}) {
    const ThreadCount guard(threads);
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Tensor x = random({6001, 10}, dtype, 30);
      for (const Tensor& view : views(x)) {
        poison(6001 * 7, dtype);
        const Tensor y = gather(view, index);
        ASSERT_EQ(y.shape(), (Shape{6001, 7}));
        for (std::int64_t b = 0; b < 6001; b += 500)
          for (std::int64_t k = 0; k < 7; ++k)
            ASSERT_EQ(y.at({b, k}), x.at({b, static_cast<std::int64_t>(index.at({k}))}));
      }
    }
  }
}

TEST(GatherRows, PicksRows) {
  const Tensor index = Tensor::from<std::int64_t>({4, 0, 0, 2}, {4});
  for (const int threads : {1, 2}) {
    const ThreadCount guard(threads);
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Tensor x = random({701, 5, 7}, dtype, 33);
      for (const Tensor& view : views(x)) {
        poison(701 * 4 * 7, dtype);
        const Tensor y = gather_rows(view, index);
        ASSERT_EQ(y.shape(), (Shape{701, 4, 7}));
        for (std::int64_t k = 0; k < 4; ++k)
          ASSERT_EQ(y.select(1, k).to_vector(),
                    x.select(1, static_cast<std::int64_t>(index.at({k}))).to_vector());
      }
    }
  }
}

TEST(GatherRows, EmptyTensorsAndErrors) {
  const Tensor index = Tensor::from<std::int64_t>({2, 0}, {2});
  EXPECT_EQ(gather_rows(Tensor::empty({0, 3, 4}), index).shape(), (Shape{0, 2, 4}));
  EXPECT_EQ(gather_rows(Tensor::empty({2, 3, 0}), index).shape(), (Shape{2, 2, 0}));
  EXPECT_THAT(message_of<ValueError>([&] { gather_rows(Tensor::ones({1, 2, 4}), index); }),
              HasSubstr("index 2 at position 0 lies outside [0, 2)"));
  EXPECT_THROW(gather_rows(Tensor::ones({3, 4}), index), ShapeError);
}

TEST(Gather, BackwardIsTheAdjoint) {
  const Tensor index = Tensor::from<std::int64_t>({4, 0, 0, 2, 9, 9, 1}, {7});
  for (const int threads : {1, 2}) {
    const ThreadCount guard(threads);
    const Tensor x = random({3001, 10}, DType::f64, 31), grad = random({3001, 7}, DType::f64, 32);
    for (const Tensor& view : views(grad)) {
      poison(3001 * 10, DType::f64);
      const Tensor back = gather_backward(view, index, 10);
      ASSERT_EQ(back.shape(), x.shape());
      EXPECT_NEAR(dot(gather(x, index), grad), dot(x, back), 1e-9);
      EXPECT_EQ(back.at({5, 3}), 0);
      EXPECT_EQ(back.at({5, 0}), grad.at({5, 1}) + grad.at({5, 2}));
    }
  }
}

TEST(Gather, StridedIndexAndEmptyTensors) {
  const Tensor x = Tensor::from({1.0, 2.0, 3.0}, {1, 3});
  const Tensor index = Tensor::from<std::int64_t>({2, 7, 0, 7}, {4}).slice(0, 0, 4, 2);
  EXPECT_THAT(gather(x, index).to_vector(), ElementsAre(3, 1));
  EXPECT_THAT(gather_backward(Tensor::ones({1, 2}), index, 3).to_vector(), ElementsAre(1, 0, 1));
  const Tensor none = Tensor::empty({0}, DType::i64);
  EXPECT_EQ(gather(x, none).shape(), (Shape{1, 0}));
  poison(3, DType::f32);
  EXPECT_THAT(gather_backward(Tensor::empty({1, 0}), none, 3).to_vector(), ElementsAre(0, 0, 0));
  EXPECT_EQ(gather(Tensor::empty({0, 3}), index).shape(), (Shape{0, 2}));
}

TEST(Gather, Errors) {
  const Tensor x = Tensor::ones({2, 3});
  EXPECT_THAT(message_of<ValueError>([&] {
                gather(x, Tensor::from<std::int64_t>({0, 3}, {2}));
              }),
              HasSubstr("index 3 at position 1 lies outside [0, 3)"));
  EXPECT_THAT(message_of<ValueError>([&] {
                gather_backward(x, Tensor::from<std::int64_t>({0, -1, 2}, {3}), 3);
              }),
              HasSubstr("index -1 at position 1"));
  EXPECT_THROW(gather(x, Tensor::ones({2})), DTypeError);
  EXPECT_THROW(gather(Tensor::ones({3}), Tensor::arange(2)), ShapeError);
  EXPECT_THROW(gather(x, Tensor::arange(2).unsqueeze(0)), ShapeError);
  EXPECT_THROW(gather_backward(x, Tensor::arange(2), 3), ShapeError);
}

TEST(Concat, JoinsAlongEveryDimension) {
  for (const int threads : {1, 2}) {
    const ThreadCount guard(threads);
    for (int dim = -3; dim < 3; ++dim) {
      Shape second{40, 30, 20}, third = second;
      second[dim] = 3;
      third[dim] = 0;
      const Tensor a = random({40, 30, 20}, DType::f32, 33), b = random(second, DType::f32, 34);
      const std::int64_t border = a.size(dim);
      for (const Tensor& view : views(a)) {
        const Tensor parts[] = {view, Tensor::empty(third), views(b).back()};
        poison(a.numel() + b.numel(), DType::f32);
        const Tensor y = concat(parts, dim);
        ASSERT_EQ(y.size(dim), border + 3);
        EXPECT_EQ(y.slice(dim, 0, border).to_vector(), a.to_vector());
        EXPECT_EQ(y.slice(dim, border, border + 3).to_vector(), b.to_vector());
      }
    }
  }
}

TEST(Concat, TakesAnyTypeAndOneTensor) {
  for (const DType dtype : {DType::u8, DType::i64, DType::f64}) {
    const Tensor a = Tensor::arange(6).reshape({2, 3}).to(dtype);
    const Tensor parts[] = {a, a.slice(1, 1, 2)};
    const Tensor y = concat(parts, 1);
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_THAT(y.to_vector(), ElementsAre(0, 1, 2, 1, 3, 4, 5, 4));
    EXPECT_THAT(concat(std::span(parts, 1), 0).to_vector(), ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

TEST(Concat, Errors) {
  const Tensor a = Tensor::ones({2, 3}), b = Tensor::ones({3, 3}), c = Tensor::ones({3}),
               d = Tensor::arange(3);
  const auto join = [](const Tensor& x, const Tensor& y, int dim) {
    const Tensor parts[] = {x, y};
    return concat(parts, dim);
  };
  EXPECT_THAT(message_of<ShapeError>([&] { join(a, b, 1); }), HasSubstr("[3, 3] does not fit [2, 3]"));
  EXPECT_THROW(join(a, c, 0), ShapeError);
  EXPECT_THROW(join(a, a, 2), ShapeError);
  EXPECT_THROW(join(c, d, 0), DTypeError);
  EXPECT_THROW(concat({}, 0), ShapeError);
  EXPECT_THROW(join(Tensor::ones({}), Tensor::ones({}), 0), ShapeError);
}

}  // namespace
}  // namespace gyre::kernels
