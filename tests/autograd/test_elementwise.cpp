#include "autograd/ops/elementwise.h"

#include <cmath>

#include "autograd/ops/reduction.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::gradients_agree;
using test::random_tensor;
using testing::HasSubstr;

using Binary = Variable (*)(const Variable&, const Variable&);
using Unary = Variable (*)(const Variable&);

/// Away from the pole of the quotient, the logarithm and the root.
GradcheckOptions positive() {
  GradcheckOptions options;
  options.low = 0.5;
  options.high = 2;
  return options;
}

struct BinaryCase {
  const char* name;
  Binary f;
  GradcheckOptions options;
};

class BinaryOperation : public testing::TestWithParam<BinaryCase> {
 protected:
  Operation operation() const {
    return [f = GetParam().f](std::vector<Variable>& in) { return f(in[0], in[1]); };
  }
};

TEST_P(BinaryOperation, GradientsOfEqualShapes) {
  EXPECT_TRUE(gradients_agree(operation(), {{3, 4}, {3, 4}}, GetParam().options));
  EXPECT_TRUE(gradients_agree(operation(), {{2, 3, 2}, {2, 3, 2}}, GetParam().options));
}

TEST_P(BinaryOperation, GradientsOfBroadcastShapes) {
  EXPECT_TRUE(gradients_agree(operation(), {{2, 3, 4}, {4}}, GetParam().options));
  EXPECT_TRUE(gradients_agree(operation(), {{3}, {2, 3}}, GetParam().options));
  EXPECT_TRUE(gradients_agree(operation(), {{2, 1, 3}, {4, 1}}, GetParam().options));
  EXPECT_TRUE(gradients_agree(operation(), {{3, 4}, {3, 1}}, GetParam().options));
  EXPECT_TRUE(gradients_agree(operation(), {{3, 2}, {}}, GetParam().options));
}

TEST_P(BinaryOperation, GradientsOfOneElement) {
  EXPECT_TRUE(gradients_agree(operation(), {{1}, {1}}, GetParam().options));
  EXPECT_TRUE(gradients_agree(operation(), {{}, {}}, GetParam().options));
  EXPECT_TRUE(gradients_agree(operation(), {{1, 1}, {2, 3}}, GetParam().options));
}

TEST_P(BinaryOperation, GradientsWhereOnlyOneSideNeedsIt) {
  const Variable fixed(random_tensor({3}, 1));
  const Variable shifted = affine(fixed, 0.25, 1);
  const Binary f = GetParam().f;
  EXPECT_TRUE(gradients_agree([&](std::vector<Variable>& in) { return f(in[0], shifted); }, {{2, 3}},
                              GetParam().options));
  EXPECT_TRUE(gradients_agree([&](std::vector<Variable>& in) { return f(shifted, in[0]); }, {{2, 3}},
                              GetParam().options));
  const Variable x(random_tensor({2, 3}), true);
  sum(f(x, shifted)).backward();
  EXPECT_FALSE(fixed.grad().defined());
}

TEST_P(BinaryOperation, GradientOfOneVariableOnBothSides) {
  const Binary f = GetParam().f;
  const Operation operation = [f](std::vector<Variable>& in) { return f(in[0], f(in[0], in[1])); };
  EXPECT_TRUE(gradients_agree(operation, {{2, 3}, {3}}, GetParam().options));
}

TEST_P(BinaryOperation, EmptyInputs) {
  const Variable a(random_tensor({0, 3}), true), b(random_tensor({3}), true);
  const Variable y = GetParam().f(a, b);
  EXPECT_EQ(y.shape(), (Shape{0, 3}));
  sum(y).backward();
  EXPECT_EQ(a.grad().shape(), (Shape{0, 3}));
  EXPECT_EQ(b.grad().to_vector(), (std::vector<double>{0, 0, 0}));
}

TEST_P(BinaryOperation, ErrorsNameBothShapes) {
  const std::string text = error_of([&] {
    GetParam().f(Variable(random_tensor({2, 3})), Variable(random_tensor({4})));
  });
  EXPECT_THAT(text, HasSubstr("[2, 3]"));
  EXPECT_THAT(text, HasSubstr("[4]"));
}

INSTANTIATE_TEST_SUITE_P(All, BinaryOperation,
                         testing::Values(BinaryCase{"add", add, {}}, BinaryCase{"sub", sub, {}},
                                         BinaryCase{"mul", mul, {}}, BinaryCase{"div", div, positive()}),
                         [](const auto& instance) { return instance.param.name; });

struct UnaryCase {
  const char* name;
  Unary f;
  double (*value)(double);
  GradcheckOptions options;
};

class UnaryOperation : public testing::TestWithParam<UnaryCase> {};

TEST_P(UnaryOperation, Values) {
  const Tensor x = affine(Variable(random_tensor({3, 5})), 1, GetParam().options.low > 0 ? 1.5 : 0).data();
  const std::vector<double> in = x.to_vector(), out = GetParam().f(Variable(x)).data().to_vector();
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(out[i], GetParam().value(in[i]), 1e-14);
}

TEST_P(UnaryOperation, Gradients) {
  const Operation operation = [f = GetParam().f](std::vector<Variable>& in) { return f(in[0]); };
  EXPECT_TRUE(gradients_agree(operation, {{3, 5}}, GetParam().options));
  EXPECT_TRUE(gradients_agree(operation, {{2, 3, 2}}, GetParam().options));
  GradcheckOptions one = GetParam().options;
  one.low = 0.5;  // a single relu must be on its rising side
  EXPECT_TRUE(gradients_agree(operation, {{1}}, one));
  EXPECT_TRUE(gradients_agree(operation, {{}}, one));
}

TEST_P(UnaryOperation, EmptyInput) {
  const Variable x(random_tensor({2, 0}), true);
  sum(GetParam().f(x)).backward();
  EXPECT_EQ(x.grad().shape(), (Shape{2, 0}));
}

INSTANTIATE_TEST_SUITE_P(
    All, UnaryOperation,
    testing::Values(UnaryCase{"neg", neg, [](double v) { return -v; }, {}},
                    UnaryCase{"exp", exp, [](double v) { return std::exp(v); }, {}},
                    UnaryCase{"log", log, [](double v) { return std::log(v); }, positive()},
                    UnaryCase{"sqrt", sqrt, [](double v) { return std::sqrt(v); }, positive()},
                    UnaryCase{"tanh", tanh, [](double v) { return std::tanh(v); }, {}},
                    UnaryCase{"relu", relu, [](double v) { return std::max(v, 0.0); }, {}},
                    UnaryCase{
                        "gelu", gelu, [](double v) { return v * 0.5 * std::erfc(-v / std::sqrt(2.0)); }, {}}),
    [](const auto& instance) { return instance.param.name; });

TEST(Elementwise, GeluGradientsInTheTails) {
  GradcheckOptions options;
  options.low = -6;
  options.high = 6;
  EXPECT_TRUE(gradients_agree([](std::vector<Variable>& in) { return gelu(in[0]); }, {{4, 6}}, options));
}

TEST(Elementwise, AffineGradients) {
  const Operation operation = [](std::vector<Variable>& in) { return affine(in[0], -2.5, 0.75); };
  EXPECT_TRUE(gradients_agree(operation, {{3, 4}}));
  EXPECT_TRUE(gradients_agree(operation, {{1}}));
  EXPECT_EQ(affine(Variable(Tensor::from({1.0, 2.0}, {2})), 3, -1).data().to_vector(),
            (std::vector<double>{2, 5}));
}

TEST(Elementwise, OperatorsAreTheFunctions) {
  const Variable a(Tensor::from({6.0}, {1})), b(Tensor::from({3.0}, {1}));
  EXPECT_EQ((a + b).data().item(), 9);
  EXPECT_EQ((a - b).data().item(), 3);
  EXPECT_EQ((a * b).data().item(), 18);
  EXPECT_EQ((a / b).data().item(), 2);
}

}  // namespace
}  // namespace gyre
