#include <gmock/gmock.h>

#include "kernels/elementwise.h"
#include "tests/kernels/op_test.h"

namespace gyre::kernels {
namespace {

using ::testing::HasSubstr;

double apply(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add: return a + b;
    case BinaryOp::sub: return a - b;
    case BinaryOp::mul: return a * b;
    case BinaryOp::div: return a / b;
  }
  return nan;
}

double apply(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::neg: return -x;
    case UnaryOp::exp: return std::exp(x);
    case UnaryOp::log: return std::log(x);
    case UnaryOp::sqrt: return std::sqrt(x);
    case UnaryOp::tanh: return std::tanh(x);
    case UnaryOp::relu: return x < 0 ? 0 : x;
    case UnaryOp::gelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  }
  return nan;
}

double derivative(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::neg: return -1;
    case UnaryOp::exp: return std::exp(x);
    case UnaryOp::log: return 1 / x;
    case UnaryOp::sqrt: return 0.5 / std::sqrt(x);
    case UnaryOp::tanh: return 1 - std::tanh(x) * std::tanh(x);
    case UnaryOp::relu: return x > 0 ? 1 : 0;
    case UnaryOp::gelu:
      return 0.5 * std::erfc(-x / std::sqrt(2.0)) +
             x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
  }
  return nan;
}

constexpr UnaryOp unary_ops[] = {UnaryOp::neg,  UnaryOp::exp,  UnaryOp::log, UnaryOp::sqrt,
                                 UnaryOp::tanh, UnaryOp::relu, UnaryOp::gelu};
constexpr DType types[] = {DType::f64, DType::f32};

/// a ∘ b by plain loops over the expanded operands.
std::vector<double> reference(BinaryOp op, const Tensor& a, const Tensor& b) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape());
  std::vector<double> x = a.expand(shape).to_vector();
  const std::vector<double> y = b.expand(shape).to_vector();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = apply(op, x[i], y[i]);
  return x;
}

TEST(Binary, BroadcastsLikeLoops) {
  const std::pair<Shape, Shape> cases[] = {
      {{3, 5}, {3, 5}},        {{4, 7, 33}, {33}},     {{4, 7, 33}, {7, 33}},
      {{4, 7, 33}, {1}},       {{33}, {4, 7, 33}},     {{4, 7, 1}, {4, 1, 33}},
      {{1, 5}, {6, 1}},        {{}, {2, 3}},           {{}, {}},
      {{1}, {1, 1}},           {{2, 1, 3}, {2, 4, 3}}, {{300, 130}, {130}},
      {{300, 130}, {300, 1}},  {{40000}, {40000}},     {{2, 3, 2, 17}, {3, 1, 17}},
      {{5, 64, 12}, {5, 1, 1}}};
  everywhere([&] {
    for (const auto& [first, second] : cases) {
      for (const DType dtype : types) {
        const Tensor a = random(first, dtype, 1), b = affine(random(second, dtype, 2), 1, 5);
        SCOPED_TRACE(a.str() + " " + b.str());
        for (const BinaryOp op : {BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::div}) {
          poison(broadcast_shapes(first, second).numel(), dtype);
          const Tensor y = binary(op, a, b);
          EXPECT_EQ(y.shape(), broadcast_shapes(first, second));
          expect_values(y, reference(op, a, b), tolerance(dtype));
        }
      }
    }
  });
}

TEST(Binary, HonoursStrides) {
  everywhere([] {
    const Tensor a = random({3, 6, 35}, DType::f32, 3), b = random({6, 35}, DType::f32, 4);
    for (const Tensor& x : views(a))
      for (const Tensor& y : views(b)) {
        expect_values(binary(BinaryOp::sub, x, y), reference(BinaryOp::sub, a, b), 1e-6);
        expect_values(binary(BinaryOp::sub, y, x), reference(BinaryOp::sub, b, a), 1e-6);
      }
    const Tensor wide = random({6, 1}, DType::f32, 5).expand({3, 6, 35});
    expect_values(binary(BinaryOp::mul, wide, wide), reference(BinaryOp::mul, wide, wide), 1e-6);
    expect_values(binary(BinaryOp::add, a, wide), reference(BinaryOp::add, a, wide), 1e-6);
  });
}

TEST(Binary, EmptyTensors) {
  const Tensor none = Tensor::empty({0, 3}, DType::f64);
  EXPECT_EQ(binary(BinaryOp::add, none, Tensor::ones({3}, DType::f64)).shape(), (Shape{0, 3}));
  EXPECT_EQ(binary(BinaryOp::add, Tensor::ones({1, 3}, DType::f64), none).shape(), (Shape{0, 3}));
}

TEST(Binary, RefusesOtherTypesAndShapes) {
  const Tensor a = Tensor::ones({2, 3}), b = Tensor::ones({2, 4});
  EXPECT_THROW(binary(BinaryOp::add, a, b), ShapeError);
  EXPECT_THAT(message_of<DTypeError>([&] { binary(BinaryOp::mul, a, a.to(DType::f64)); }), HasSubstr("mul"));
  EXPECT_THAT(message_of<DTypeError>([&] { binary(BinaryOp::div, a.to(DType::i64), a.to(DType::i64)); }),
              HasSubstr("div takes f32 or f64, not i64"));
}

TEST(Unary, MatchesTheStandardLibrary) {
  everywhere([] {
    for (const UnaryOp op : unary_ops) {
      for (const DType dtype : types) {
        Tensor x = random({7, 113}, dtype, 6, 3.0);
        if (op == UnaryOp::log || op == UnaryOp::sqrt) x = binary(BinaryOp::mul, x, x);
        std::vector<double> wanted = x.to_vector();
        for (double& value : wanted) value = apply(op, value);
        SCOPED_TRACE(static_cast<int>(op));
        for (const Tensor& view : views(x)) {
          poison(x.numel(), dtype);
          expect_values(unary(op, view), wanted, dtype == DType::f64 ? 1e-14 : 5e-7);
        }
      }
    }
  });
}

TEST(Unary, SpecialValues) {
  const std::vector<double> x{0.0, -0.0, nan, infinity, -infinity, 1e30, -1e30,
                              200, -200, 750, -750,     -1,        1e-30};
  everywhere([&] {
    for (const UnaryOp op : unary_ops) {
      for (const DType dtype : types) {
        const Tensor input = Tensor::from(x, {13}).to(dtype);
        std::vector<double> wanted = input.to_vector();
        for (double& value : wanted) {
          value = apply(op, value);
          if (dtype == DType::f32) value = static_cast<double>(static_cast<float>(value));
        }
        SCOPED_TRACE(static_cast<int>(op));
        expect_values(unary(op, input), wanted, dtype == DType::f64 ? 1e-14 : 5e-7);
      }
    }
  });
}

TEST(Unary, GeluIsAccurateFromTailToTail) {
  std::vector<float> x;
  for (int i = -40000; i <= 40000; ++i) x.push_back(static_cast<float>(i) * 1e-3F);
  const Tensor input = Tensor::from(x, {static_cast<std::int64_t>(x.size())});
  everywhere([&] {
    const std::vector<double> y = unary(UnaryOp::gelu, input).to_vector();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = apply(UnaryOp::gelu, static_cast<double>(x[i]));
      // Relative accuracy holds far into the left tail, where 1 + erf would cancel.
      ASSERT_LE(std::abs(y[i] - exact), 3e-6 * std::abs(exact) + 1e-34) << "x = " << x[i];
      ASSERT_LE(std::abs(y[i] - exact), 3e-7 * std::max(1.0, std::abs(exact))) << "x = " << x[i];
    }
  });
}

TEST(UnaryBackward, MatchesDerivatives) {
  everywhere([] {
    for (const UnaryOp op : unary_ops) {
      for (const DType dtype : types) {
        Tensor x = random({5, 77}, dtype, 7, 2.0);
        if (op == UnaryOp::log || op == UnaryOp::sqrt) x = affine(binary(BinaryOp::mul, x, x), 1, 0.1);
        const Tensor grad = random({5, 77}, dtype, 8), y = unary(op, x);
        std::vector<double> wanted = x.to_vector();
        const std::vector<double> g = grad.to_vector();
        for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = g[i] * derivative(op, wanted[i]);
        SCOPED_TRACE(static_cast<int>(op));
        const std::vector<Tensor> xs = views(x), ys = views(y), grads = views(grad);
        for (std::size_t i = 0; i < xs.size(); ++i) {
          poison(x.numel(), dtype);
          expect_values(unary_backward(op, xs[i], ys[i], grads[xs.size() - 1 - i]), wanted,
                        dtype == DType::f64 ? 1e-14 : 1e-6);
        }
      }
    }
  });
}

TEST(UnaryBackward, GeluInTheTails) {
  everywhere([] {
    const Tensor x = Tensor::from({-40.F, -13.F, -5.F, 0.F, 5.F, 13.F, 40.F}, {7});
    std::vector<double> wanted = x.to_vector();
    for (double& value : wanted) value = derivative(UnaryOp::gelu, value);
    expect_values(unary_backward(UnaryOp::gelu, x, Tensor(), Tensor::ones({7})), wanted, 3e-7);
  });
}

TEST(UnaryBackward, RefusesWhatDoesNotFit) {
  const Tensor x = Tensor::ones({4});
  EXPECT_THAT(message_of<ValueError>([&] { unary_backward(UnaryOp::exp, x, Tensor(), x); }),
              HasSubstr("backward of exp needs its result"));
  EXPECT_THAT(message_of<ValueError>([&] { unary_backward(UnaryOp::gelu, Tensor(), x, x); }),
              HasSubstr("backward of gelu needs its input"));
  EXPECT_THROW(unary_backward(UnaryOp::gelu, x, x, Tensor::ones({5})), ShapeError);
  EXPECT_THROW(unary_backward(UnaryOp::gelu, x, x, Tensor::ones({4}, DType::f64)), DTypeError);
  EXPECT_THROW(unary(UnaryOp::exp, Tensor::arange(3)), DTypeError);
}

TEST(Affine, ScalesAndShifts) {
  everywhere([] {
    for (const DType dtype : types) {
      const Tensor x = random({9, 31}, dtype, 9);
      std::vector<double> wanted = x.to_vector();
      for (double& value : wanted) value = -1.5 * value + 0.25;
      for (const Tensor& view : views(x)) expect_values(affine(view, -1.5, 0.25), wanted, tolerance(dtype));
    }
  });
}

TEST(AddInto, AccumulatesIntoAnyView) {
  everywhere([] {
    for (const DType dtype : types) {
      const Tensor x = random({4, 6, 19}, dtype, 10), start = random({4, 6, 19}, dtype, 11);
      std::vector<double> wanted = start.to_vector();
      const std::vector<double> added = x.to_vector();
      for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += 0.5 * added[i];
      for (Tensor& accumulator : views(start.clone()))
        for (const Tensor& view : views(x)) {
          accumulator.copy_(start);
          add_into(accumulator, view, 0.5);
          expect_values(accumulator, wanted, tolerance(dtype));
        }
    }
  });
}

TEST(AddInto, RenewsTheVersionAndChecksShapes) {
  Tensor sum = Tensor::zeros({3});
  const std::uint64_t version = sum.version();
  add_into(sum, Tensor::ones({1}).expand({3}));
  EXPECT_NE(sum.version(), version);
  EXPECT_EQ(sum.to_vector(), (std::vector<double>{1, 1, 1}));
  EXPECT_THROW(add_into(sum, Tensor::ones({4})), ShapeError);
  EXPECT_THROW(add_into(sum, Tensor::ones({3}, DType::f64)), DTypeError);
}

}  // namespace
}  // namespace gyre::kernels
