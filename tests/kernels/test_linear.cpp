#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "core/error.h"
#include "kernels/linear.h"
#include "tests/kernels/product_oracle.h"

namespace gyre::kernels {
namespace {

using ::testing::ThrowsMessage;

/// Element (r, c) of a matrix given as values, or of its transpose.
auto rows_of(const std::vector<double>& values, std::int64_t cols) {
  return [&values, cols](auto r, auto c) { return values[static_cast<std::size_t>(r * cols + c)]; };
}
auto columns_of(const std::vector<double>& values, std::int64_t cols) {
  return [&values, cols](auto r, auto c) { return values[static_cast<std::size_t>(c * cols + r)]; };
}

/// y, dx, dw and db of a layer in sums of type Sum.
struct Expected {
  std::vector<double> y, x, w, b;
};

template <class Sum>
Expected expected(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& grad) {
  const std::int64_t n = x.size(0), k = x.size(1), m = w.size(0);
  const auto xs = x.to_vector(), ws = w.to_vector(), gs = grad.to_vector();
  Expected e;
  e.y = plain_product<Sum>(n, m, k, rows_of(xs, k), columns_of(ws, k));
  if (b.defined()) {
    const auto bs = b.to_vector();
    for (std::size_t i = 0; i < e.y.size(); ++i) e.y[i] += bs[i % bs.size()];
  }
  e.x = plain_product<Sum>(n, k, m, rows_of(gs, m), rows_of(ws, k));
  e.w = plain_product<Sum>(m, k, n, columns_of(gs, m), rows_of(xs, k));
  e.b = plain_product<Sum>(
      1, m, n, [](auto, auto) { return 1.0; }, rows_of(gs, m));
  return e;
}

void check(const std::string& name, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& grad,
           PackedWeight* cache = nullptr) {
  for (const int threads : {1, 2}) {
    const ThreadCount scope(threads);
    SCOPED_TRACE(name + ", threads " + std::to_string(threads));
    poison(x.size(0) * w.size(0), x.dtype());
    const Tensor y = linear_forward(x, w, b, cache);
    poison(x.numel(), x.dtype());
    poison(w.numel(), x.dtype());
    const LinearGrads grads = linear_backward(x, w, grad, true, true, true, cache);
    EXPECT_EQ(y.shape(), (Shape{x.size(0), w.size(0)}));
    EXPECT_EQ(grads.x.shape(), x.shape());
    EXPECT_EQ(grads.w.shape(), w.shape());
    EXPECT_EQ(grads.b.shape(), (Shape{w.size(0)}));
    const Expected exact = expected<double>(x, w, b, grad);
    if (x.dtype() == DType::f64) {
      EXPECT_LE(relative_l2(y.to_vector(), exact.y), 1e-14);
      EXPECT_LE(relative_l2(grads.x.to_vector(), exact.x), 1e-14);
      EXPECT_LE(relative_l2(grads.w.to_vector(), exact.w), 1e-14);
      EXPECT_LE(relative_l2(grads.b.to_vector(), exact.b), 1e-13);
    } else {
      const Expected plain = expected<float>(x, w, b, grad);
      expect_f32_accuracy(y.to_vector(), exact.y, plain.y);
      expect_f32_accuracy(grads.x.to_vector(), exact.x, plain.x);
      expect_f32_accuracy(grads.w.to_vector(), exact.w, plain.w);
      expect_f32_accuracy(grads.b.to_vector(), exact.b, plain.b);
    }
  }
}

class Linear : public ::testing::TestWithParam<DType> {
 protected:
  Tensor draw(const Shape& shape) { return random(shape, GetParam(), seed_++); }

 private:
  std::uint64_t seed_ = 200;
};

TEST_P(Linear, MatchesDotProducts) {
  for (const auto& [n, k, m] : {std::array{1, 1, 1}, {1, 5, 7}, {9, 1, 4}, {70, 33, 21}, {130, 64, 10}}) {
    check("with bias", draw({n, k}), draw({m, k}), draw({m}), draw({n, m}));
    check("without bias", draw({n, k}), draw({m, k}), Tensor(), draw({n, m}));
  }
}

// From 1024 rows on weights are packed and weight gradients take another path.
TEST_P(Linear, ManyRowsWithPackedWeight) {
  PackedWeight cache;
  check("packed", draw({1100, 40}), draw({52, 40}), draw({52}), draw({1100, 52}), &cache);
  EXPECT_EQ(cache.builds(), GetParam() == DType::f32 ? 2 : 0);
}

TEST_P(Linear, Views) {
  PackedWeight cache;
  check("columns of x", draw({70, 50}).slice(1, 7, 40), draw({21, 33}), draw({21}), draw({70, 21}), &cache);
  check("transposed x", draw({33, 70}).transpose(0, 1), draw({21, 33}), draw({21}), draw({70, 21}), &cache);
  check("transposed w", draw({70, 33}), draw({33, 21}).transpose(0, 1), draw({21}), draw({70, 21}), &cache);
  check("sliced w", draw({70, 33}), draw({42, 66}).slice(0, 0, 42, 2).slice(1, 0, 66, 2), draw({21}),
        draw({70, 21}), &cache);
  check("strided bias", draw({70, 33}), draw({21, 33}), draw({63}).slice(0, 0, 63, 3), draw({70, 21}),
        &cache);
  check("expanded gradient", draw({70, 33}), draw({21, 33}), draw({21}), draw({1, 21}).expand({70, 21}),
        &cache);
  check("transposed gradient", draw({70, 33}), draw({21, 33}), draw({21}), draw({21, 70}).transpose(0, 1),
        &cache);
  check("expanded x", draw({1, 33}).expand({70, 33}), draw({21, 33}), draw({21}), draw({70, 21}), &cache);
}

TEST_P(Linear, EmptySizes) {
  EXPECT_EQ(linear_forward(draw({0, 3}), draw({4, 3}), draw({4})).shape(), (Shape{0, 4}));
  EXPECT_EQ(linear_forward(draw({5, 3}), draw({0, 3}), Tensor()).shape(), (Shape{5, 0}));
  const Tensor bias = draw({4});
  EXPECT_EQ(linear_forward(draw({1, 0}), draw({4, 0}), bias).to_vector(), bias.to_vector());
  const LinearGrads none = linear_backward(draw({0, 3}), draw({4, 3}), draw({0, 4}), true, true, true);
  EXPECT_EQ(none.x.shape(), (Shape{0, 3}));
  EXPECT_EQ(none.w.to_vector(), std::vector<double>(12, 0));
  EXPECT_EQ(none.b.to_vector(), std::vector<double>(4, 0));
  EXPECT_EQ(linear_backward(draw({2, 3}), draw({0, 3}), draw({2, 0}), true, true, true).x.to_vector(),
            std::vector<double>(6, 0));
}

TEST_P(Linear, OnlyWantedGradients) {
  const Tensor x = draw({6, 3}), w = draw({4, 3}), grad = draw({6, 4});
  const LinearGrads all = linear_backward(x, w, grad, true, true, true);
  for (int wanted = 0; wanted < 8; ++wanted) {
    const LinearGrads some = linear_backward(x, w, grad, wanted & 1, wanted & 2, wanted & 4);
    EXPECT_EQ(some.x.defined(), (wanted & 1) != 0);
    EXPECT_EQ(some.w.defined(), (wanted & 2) != 0);
    EXPECT_EQ(some.b.defined(), (wanted & 4) != 0);
    if (some.x.defined()) {
      EXPECT_EQ(some.x.to_vector(), all.x.to_vector());
    }
    if (some.w.defined()) {
      EXPECT_EQ(some.w.to_vector(), all.w.to_vector());
    }
    if (some.b.defined()) {
      EXPECT_EQ(some.b.to_vector(), all.b.to_vector());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Linear, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(PackedWeight, RebuildsWhenTheWeightChanges) {
  PackedWeight cache;
  const Tensor x = random({1024, 16}, DType::f32, 0);
  Tensor w = random({24, 16}, DType::f32, 1);
  const auto product = [&](const Tensor& weight) {
    return linear_forward(x, weight, Tensor(), &cache).to_vector();
  };
  const auto direct = [&](const Tensor& weight) { return linear_forward(x, weight, Tensor()).to_vector(); };

  const auto first = product(w);
  EXPECT_EQ(cache.builds(), 1);
  EXPECT_EQ(product(w), first);
  EXPECT_EQ(cache.builds(), 1) << "an unchanged weight is not packed again";

  w.mutable_data<float>()[5] += 1;
  EXPECT_LE(relative_l2(product(w), direct(w)), 1e-6);
  EXPECT_NE(product(w), first);
  EXPECT_EQ(cache.builds(), 2);

  w.copy_(random({24, 16}, DType::f32, 2));
  EXPECT_LE(relative_l2(product(w), direct(w)), 1e-6);
  EXPECT_EQ(cache.builds(), 3);

  const Tensor other = random({24, 16}, DType::f32, 3);
  EXPECT_LE(relative_l2(product(other), direct(other)), 1e-6) << "another storage";
  EXPECT_EQ(cache.builds(), 4);

  cache.clear();
  EXPECT_LE(relative_l2(product(other), direct(other)), 1e-6);
  EXPECT_EQ(cache.builds(), 5);
}

TEST(PackedWeight, TellsViewsOfOneStorageApart) {
  PackedWeight cache;
  const Tensor x = random({1024, 16}, DType::f32, 0), both = random({48, 16}, DType::f32, 1);
  for (const Tensor& w : {both.slice(0, 0, 24), both.slice(0, 24, 48), both.slice(0, 0, 48)}) {
    EXPECT_LE(relative_l2(linear_forward(x, w, Tensor(), &cache).to_vector(),
                          linear_forward(x, w, Tensor()).to_vector()),
              1e-6);
  }
  EXPECT_EQ(cache.builds(), 3);
}

TEST(PackedWeight, FewRowsBuildNothing) {
  PackedWeight cache;
  const Tensor w = random({24, 16}, DType::f32, 1);
  linear_forward(random({1023, 16}, DType::f32, 0), w, Tensor(), &cache);
  EXPECT_EQ(cache.builds(), 0);
}

TEST(PackedWeight, StridedWeightsAreNotRemembered) {
  PackedWeight cache;
  const Tensor w = random({16, 24}, DType::f32, 1).transpose(0, 1);
  linear_forward(random({1024, 16}, DType::f32, 0), w, Tensor(), &cache);
  EXPECT_EQ(cache.builds(), 0);
}

TEST(PackedWeight, ServesSeveralThreads) {
  PackedWeight cache;
  const Tensor x = random({1024, 16}, DType::f32, 0), w = random({24, 16}, DType::f32, 1);
  std::vector<std::vector<double>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] {
      const SerialScope serial;
      result = linear_forward(x, w, Tensor(), &cache).to_vector();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_EQ(cache.builds(), 1);
}

TEST(LinearErrors, NameShapesAndTypes) {
  const Tensor x = Tensor::zeros({5, 3}), w = Tensor::zeros({4, 3});
  EXPECT_THAT(
      [&] {
        linear_forward(x, Tensor::zeros({4, 2}), Tensor());
      },
      ThrowsMessage<ShapeError>("linear: x [5, 3] and w [4, 2] differ in their last size"));
  EXPECT_THAT(
      [&] {
        linear_forward(Tensor::zeros({2, 5, 3}), w, Tensor());
      },
      ThrowsMessage<ShapeError>("linear: x has shape [2, 5, 3], not rank 2"));
  EXPECT_THROW(linear_forward(x, w, Tensor::zeros({3})), ShapeError);
  EXPECT_THROW(linear_forward(x, w, Tensor::zeros({4}, DType::f64)), DTypeError);
  EXPECT_THROW(linear_forward(x, Tensor::zeros({4, 3}, DType::f64), Tensor()), DTypeError);
  EXPECT_THAT(
      [&] {
        linear_forward(Tensor::zeros({1, 1}, DType::u8), Tensor::zeros({1, 1}, DType::u8), Tensor());
      },
      ThrowsMessage<DTypeError>("linear takes f32 or f64, not u8"));
  EXPECT_THROW(linear_backward(x, w, Tensor::zeros({5, 3}), true, true, true), ShapeError);
  EXPECT_THROW(linear_backward(x, w, Tensor::zeros({5, 4}, DType::f64), true, true, true), DTypeError);
}

}  // namespace
}  // namespace gyre::kernels
