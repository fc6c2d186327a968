#include "autograd/engine.h"

#include "autograd/ops/elementwise.h"
#include "autograd/ops/linear_algebra.h"
#include "autograd/ops/reduction.h"
#include "autograd/ops/shape.h"
#include "kernels/elementwise.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::random_tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using Values = std::vector<double>;

Variable leaf(std::initializer_list<double> values) {
  return Variable(Tensor::from(values, {static_cast<std::int64_t>(values.size())}), true);
}

/// An identity whose backward is `backward`.
Variable custom(const char* name, const Variable& x, BackwardFunction backward) {
  return make_result(name, x.data().clone(), {x}, std::move(backward));
}

TEST(Engine, SharedInputsCollectAllGradients) {
  const Variable x = leaf({2, 3});
  const Variable y = x * x;
  sum(y * x + y).backward();  // x³ + x²
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(16, 33));
}

TEST(Engine, BothSidesOfOneAddition) {
  const Variable x = leaf({2, 3});
  sum(x + x).backward();
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(2, 2));
}

TEST(Engine, MicroStepsAddUp) {
  const Variable x = leaf({2, 3});
  for (int step = 0; step < 3; ++step) sum(x * x).backward();
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(12, 18));
}

TEST(Engine, AGivenGradientIsNeverChanged) {
  const Variable x = leaf({2, 3}), y = leaf({1, 1});
  const Tensor grad = Tensor::from({1.0, 10.0}, {2});
  (x + y).backward(grad);
  (x + y).backward(grad);
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(2, 20));
  EXPECT_THAT(grad.to_vector(), ElementsAre(1, 10));
  EXPECT_NE(x.grad().storage(), y.grad().storage());
}

TEST(Engine, BackwardFromALeaf) {
  const Variable x = leaf({2});
  x.backward();
  x.backward(Tensor::from({3.0}, {1}));
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(4));
}

TEST(Engine, FirstGradientIsTakenOverWithoutACopy) {
  const Variable x = leaf({2, 3});
  const void* produced = nullptr;
  custom("op", x, [&](const Tensor& grad) -> Gradients {
    Tensor dx = grad.clone();
    produced = dx.raw_data();
    return {dx};
  }).backward(Tensor::ones({2}, DType::f64));
  EXPECT_EQ(x.grad().raw_data(), produced);
}

TEST(Engine, AGradientInsideALargerBlockIsCopied) {
  const Variable x = leaf({2, 3});
  const auto block = [](const Tensor&) -> Gradients {
    return {Tensor::from({1.0, 2.0, 3.0, 4.0}, {4}).slice(0, 1, 3)};
  };
  custom("op", x, block).backward(Tensor::ones({2}, DType::f64));
  EXPECT_EQ(x.grad().storage()->bytes(), 2 * sizeof(double));
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(2, 3));
}

TEST(Engine, ExpandedGradientsBecomeDense) {
  const Variable x(random_tensor({3, 2}), true);
  sum(x).backward();
  sum(x).backward();
  EXPECT_TRUE(x.grad().is_contiguous());
  EXPECT_EQ(x.grad().to_vector(), Values(6, 2));
}

TEST(Engine, NodesRunInDecreasingSequence) {
  std::vector<std::string> order;
  const auto trace = [&order](const char* name, const Variable& x) {
    return custom(name, x, [&order, name](const Tensor& grad) -> Gradients {
      order.emplace_back(name);
      return {grad};
    });
  };
  const Variable x = leaf({1});
  const Variable a = trace("a", x), b = trace("b", x), c = trace("c", a);
  (c + (b + a)).backward();
  EXPECT_THAT(order, ElementsAre("c", "b", "a"));
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(3));
}

/// (x, 2x); `calls` counts its backward, which notes which gradients came.
std::vector<Variable> twice(const Variable& x, int& calls, std::vector<bool>& came) {
  return make_results("twice", {x.data().clone(), kernels::affine(x.data(), 2, 0)}, {x},
                      [&](std::span<const Tensor> grads) -> Gradients {
                        ++calls;
                        came = {grads[0].defined(), grads[1].defined()};
                        if (!grads[1].defined()) return {grads[0]};
                        const Tensor second = kernels::affine(grads[1], 2, 0);
                        if (!grads[0].defined()) return {second};
                        return {kernels::binary(kernels::BinaryOp::add, grads[0], second)};
                      });
}

TEST(Engine, OutputsOfOneNodeComeBackTogether) {
  const Variable x = leaf({2, 3});
  int calls = 0;
  std::vector<bool> came;
  {
    const auto results = twice(x, calls, came);
    const Variable late = results[0] * results[1];
    sum(results[0] + late + results[1]).backward();  // 3x + 2x²
    EXPECT_THAT(x.grad().to_vector(), ElementsAre(11, 15));
    EXPECT_THAT(came, ElementsAre(true, true));
    EXPECT_THAT(error_of([&] { sum(results[1]).backward(); }), HasSubstr("a second time through twice"));
  }
  for (const std::size_t only : {0u, 1u}) {
    x.state()->grad = Tensor();
    sum(twice(x, calls, came)[only]).backward();
    EXPECT_THAT(x.grad().to_vector(), testing::Each(only + 1));
    EXPECT_THAT(came, ElementsAre(only == 0, only == 1));
  }
  EXPECT_EQ(calls, 3);
}

TEST(Engine, SecondBackwardNamesTheOperation) {
  const Variable x(random_tensor({2, 3}), true), w(random_tensor({2, 3}, 1), true);
  const Variable y = linear(x, w, Variable());
  const Variable loss = sum(y);
  loss.backward();
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("backward a second time through sum"));
  EXPECT_THAT(error_of([&] { sum(y).backward(); }), HasSubstr("backward a second time through linear"));
}

TEST(Engine, BackwardWithoutHistoryOrGradientThrows) {
  EXPECT_THAT(error_of([] { Variable(random_tensor({1})).backward(); }), HasSubstr("requires no gradient"));
  const Variable x = leaf({1, 2});
  EXPECT_THAT(error_of([&] { neg(x).backward(); }), HasSubstr("[2]"));
  EXPECT_THAT(error_of([&] { neg(x).backward(Tensor::ones({3}, DType::f64)); }), HasSubstr("[3]"));
  EXPECT_THAT(error_of([&] { neg(x).backward(Tensor::ones({2})); }), HasSubstr("f32"));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, WrongGradientsAreInternalErrors) {
  const Variable x = leaf({1, 2});
  const Tensor one = Tensor::ones({2}, DType::f64);
  const auto message = [&](const Gradients& grads) {
    const Variable y = custom("op", x, [grads](const Tensor&) { return grads; });
    return error_of([&] { y.backward(one); });
  };
  EXPECT_EQ(message({Tensor::ones({3}, DType::f64)}),
            "op: gradient 0 has shape [3], its input [2] (internal error)");
  EXPECT_EQ(message({Tensor::ones({2})}), "op: gradient 0 is f32, its input f64 (internal error)");
  EXPECT_EQ(message({one, one}), "op: 2 gradients for 1 inputs (internal error)");
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, AnErrorLeavesNoGradientBehind) {
  const Variable x = leaf({1, 2});
  const Variable early = neg(x);
  bool broken = true;
  const Variable late = custom("op", x, [&broken](const Tensor& grad) -> Gradients {
    require(!broken, "broken");
    return {grad};
  });
  EXPECT_EQ(error_of([&] { sum(early + late).backward(); }), "broken");
  sum(early).backward();  // would count twice with what was waiting at `early`
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(-1, -1));
}

TEST(Engine, MissingGradientsStopThere) {
  const Variable x = leaf({1, 2}), y = leaf({1, 2});
  bool reached = false;
  const Variable inner = custom("inner", x, [&reached](const Tensor& grad) -> Gradients {
    reached = true;
    return {grad};
  });
  make_result("half", x.data().clone(), {inner, y}, [](const Tensor& grad) -> Gradients {
    return {Tensor(), grad};
  }).backward(Tensor::ones({2}, DType::f64));
  EXPECT_FALSE(reached || x.grad().defined());
  EXPECT_TRUE(y.grad().defined());
}

TEST(Engine, ClosuresAndActivationsGoAsSoonAsANodeRan) {
  const Variable x = leaf({1, 2});
  std::weak_ptr<Storage> activation;
  bool alive_at_first = true;
  Variable y = custom("first", x, [&](const Tensor& grad) -> Gradients {
    alive_at_first = !activation.expired();
    return {grad};
  });
  {
    const Variable middle = affine(y, 2);
    activation = middle.data().storage();
    y = exp(gelu(middle));
  }
  y = sum(y);
  EXPECT_FALSE(activation.expired());
  y.backward();
  EXPECT_FALSE(alive_at_first);
  EXPECT_TRUE(x.grad().defined());
}

TEST(Engine, DeepGraphsNeedNoStack) {
  const Variable x = leaf({1});
  Variable y = x, unused = x;
  for (int i = 0; i < 200'000; ++i) {
    y = affine(y, 1, 1);
    unused = affine(unused, 1, 1);
  }
  y.backward();
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(1));
  unused = Variable();  // a graph that no backward released
  SUCCEED();
}

TEST(Engine, DeepGraphsOfPairsNeedNoStack) {
  int calls = 0;
  std::vector<bool> came;
  const Variable x = leaf({0});
  Variable y = x, unused = x;
  for (int i = 0; i < 100'000; ++i) {
    for (Variable* last : {&y, &unused}) {
      const auto results = twice(*last, calls, came);
      *last = results[0] * results[1];
    }
  }
  y.backward();
  EXPECT_EQ(calls, 100'000);
  unused = Variable();
}

TEST(Engine, ManyPathsThroughADiamondChainRunOnce) {
  const Variable x = leaf({1});
  Variable y = x;
  for (int i = 0; i < 40; ++i) y = affine(y + y, 0.5);  // 2^40 paths
  y.backward();
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(1));
}

}  // namespace
}  // namespace gyre
