#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "core/error.h"
#include "kernels/optimizer.h"
#include "tests/kernels/product_oracle.h"

namespace gyre::kernels {
namespace {

using ::testing::ThrowsMessage;
using Tensors = std::vector<Tensor>;

// Tails of every vector length, nothing at all, and tensors larger than a task.
const std::vector<Shape> shapes = {{1}, {3, 5}, {0, 4}, {16}, {17}, {1000}, {129, 101}, {2}, {20000}};

Tensors draw(DType dtype, std::uint64_t address, bool positive = false) {
  RandomStream stream(17, Purpose::test, address);
  Tensors tensors;
  for (const Shape& shape : shapes) {
    tensors.push_back(positive ? random_uniform(shape, 0.01, 1, stream, dtype)
                               : random_normal(shape, 1, stream, dtype));
  }
  return tensors;
}

std::vector<double> flat(const Tensors& tensors) {
  std::vector<double> all;
  for (const Tensor& x : tensors) {
    const auto values = x.to_vector();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

double tolerance(DType dtype) { return dtype == DType::f64 ? 1e-15 : 3e-7; }

class Optimizer : public ::testing::TestWithParam<DType> {};

TEST_P(Optimizer, AdamWFollowsItsFormula) {
  everywhere([] {
    for (const std::int64_t step : {1, 2, 100}) {
      const AdamWStep o{0.01, 0.9, 0.98, 1e-6, 0.05, step, 0.25};
      Tensors p = draw(GetParam(), 0), m = draw(GetParam(), 2), v = draw(GetParam(), 3, true);
      const Tensors g = draw(GetParam(), 1);
      auto ep = flat(p), em = flat(m), ev = flat(v);
      const auto eg = flat(g);
      for (std::size_t i = 0; i < ep.size(); ++i) {
        const double grad = eg[i] * o.grad_scale;
        ep[i] -= o.lr * o.weight_decay * ep[i];
        em[i] = o.beta1 * em[i] + (1 - o.beta1) * grad;
        ev[i] = o.beta2 * ev[i] + (1 - o.beta2) * grad * grad;
        const double m_hat = em[i] / (1 - std::pow(o.beta1, static_cast<double>(step)));
        const double v_hat = ev[i] / (1 - std::pow(o.beta2, static_cast<double>(step)));
        ep[i] -= o.lr * m_hat / (std::sqrt(v_hat) + o.eps);
      }
      adamw_step(p, g, m, v, o);
      EXPECT_LE(relative_l2(flat(p), ep), tolerance(GetParam()));
      EXPECT_LE(relative_l2(flat(m), em), tolerance(GetParam()));
      EXPECT_LE(relative_l2(flat(v), ev), tolerance(GetParam()));
    }
  });
}

// With zero state the first step is lr·sign(g), whatever the size of the gradient.
TEST_P(Optimizer, FirstAdamWStepHasTheLengthOfTheRate) {
  Tensors p = {Tensor::from({1.0, 2.0, -3.0}, {3}).to(GetParam())};
  const Tensors g = {Tensor::from({100.0, -0.5, 3e-3}, {3}).to(GetParam())};
  Tensors m = {Tensor::zeros({3}, GetParam())}, v = {Tensor::zeros({3}, GetParam())};
  adamw_step(p, g, m, v, {.lr = 0.125, .eps = 0, .step = 1});
  const std::vector<double> expected = {0.875, 2.125, -3.125};
  EXPECT_LE(relative_l2(p[0].to_vector(), expected), 1e-6);
}

TEST_P(Optimizer, SgdFollowsItsFormula) {
  everywhere([] {
    for (const SgdStep& o : {SgdStep{0.1, 0, false, 0, 1}, SgdStep{0.1, 0, false, 0.01, 0.5},
                             SgdStep{0.1, 0.9, false, 0.01, 0.5}, SgdStep{0.1, 0.9, true, 0.01, 0.5}}) {
      Tensors p = draw(GetParam(), 0), buffers = draw(GetParam(), 2);
      const Tensors g = draw(GetParam(), 1);
      auto ep = flat(p), eb = flat(buffers);
      const auto eg = flat(g);
      for (std::size_t i = 0; i < ep.size(); ++i) {
        const double grad = eg[i] * o.grad_scale + o.weight_decay * ep[i];
        if (o.momentum != 0) eb[i] = o.momentum * eb[i] + grad;
        const double direction = o.momentum == 0 ? grad : o.nesterov ? grad + o.momentum * eb[i] : eb[i];
        ep[i] -= o.lr * direction;
      }
      if (o.momentum == 0) {
        sgd_step(p, g, {}, o);
      } else {
        sgd_step(p, g, buffers, o);
      }
      EXPECT_LE(relative_l2(flat(p), ep), tolerance(GetParam()));
      EXPECT_LE(relative_l2(flat(buffers), eb), tolerance(GetParam()));
    }
  });
}

TEST_P(Optimizer, LerpMovesTowardsTheSource) {
  everywhere([] {
    for (const double weight : {0.0, 0.001, 0.5, 1.0}) {
      Tensors target = draw(GetParam(), 0);
      const Tensors source = draw(GetParam(), 1);
      auto expected = flat(target);
      const auto to = flat(source);
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += weight * (to[i] - expected[i]);
      lerp_(target, source, weight);
      EXPECT_LE(relative_l2(flat(target), expected), tolerance(GetParam()));
    }
  });
}

TEST_P(Optimizer, GlobalNorm) {
  const Tensors g = draw(GetParam(), 0);
  double sum = 0;
  for (const double x : flat(g)) sum += x * x;
  everywhere([&] {
    const double norm = global_norm(g);
    EXPECT_NEAR(norm, std::sqrt(sum), 1e-13 * norm);
    const ThreadCount scope(1);
    EXPECT_EQ(global_norm(g), norm);
  });
}

TEST_P(Optimizer, ThreadCountDoesNotChangeABit) {
  const auto run = [&](int threads) {
    const ThreadCount scope(threads);
    Tensors p = draw(GetParam(), 0), m = draw(GetParam(), 2), v = draw(GetParam(), 3, true);
    const Tensors g = draw(GetParam(), 1);
    adamw_step(p, g, m, v, {.lr = 0.01, .weight_decay = 0.1, .step = 3, .grad_scale = 0.7});
    sgd_step(p, g, m, {.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1});
    lerp_(p, v, 0.3);
    return flat(p);
  };
  const auto one = run(1);
  EXPECT_EQ(run(2), one);
  EXPECT_EQ(run(3), one);
}

TEST_P(Optimizer, StridedGradients) {
  Tensors p = {Tensor::zeros({3, 2}, GetParam())};
  const Tensors g = {Tensor::from({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {2, 3}).to(GetParam()).transpose(0, 1)};
  sgd_step(p, g, {}, {.lr = 1});
  EXPECT_EQ(p[0].to_vector(), (std::vector<double>{-1, -4, -2, -5, -3, -6}));
  EXPECT_EQ(global_norm(g), std::sqrt(91.0));
}

INSTANTIATE_TEST_SUITE_P(Types, Optimizer, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(OptimizerLists, MixTypesAndSkipUndefinedGradients) {
  Tensors p = {Tensor::ones({5}), Tensor::ones({5}), Tensor::ones({5}, DType::f64)};
  const Tensors g = {Tensor::ones({5}), Tensor(), Tensor::full({5}, 2, DType::f64)};
  Tensors m = {Tensor::zeros({5}), Tensor(), Tensor::zeros({5}, DType::f64)};
  Tensors v = {Tensor::zeros({5}), Tensor(), Tensor::zeros({5}, DType::f64)};
  const auto version = p[1].version(), written = p[0].version();
  adamw_step(p, g, m, v, {.lr = 0.5, .step = 1});
  EXPECT_NEAR(p[0].at({4}), 0.5, 1e-6);
  EXPECT_NEAR(p[2].at({4}), 0.5, 1e-7);
  EXPECT_EQ(p[1].to_vector(), std::vector<double>(5, 1));
  EXPECT_EQ(p[1].version(), version);
  EXPECT_NE(p[0].version(), written) << "caches of the weight must notice";
  EXPECT_EQ(global_norm(g), 5);
}

TEST(OptimizerLists, NothingToDo) {
  adamw_step({}, {}, {}, {}, {});
  sgd_step({}, {}, {}, {});
  lerp_({}, {}, 0.5);
  EXPECT_EQ(global_norm({}), 0);
  EXPECT_EQ(global_norm(Tensors{Tensor(), Tensor::zeros({0})}), 0);
}

TEST(OptimizerLists, NormShowsBadNumbersAndDoesNotOverflow) {
  EXPECT_DOUBLE_EQ(global_norm(Tensors{Tensor::full({7}, 1e30)}),
                   std::sqrt(7.0) * static_cast<double>(1e30F));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(global_norm(Tensors{Tensor::ones({9}), Tensor::full({1}, inf)}), inf);
  EXPECT_TRUE(std::isnan(global_norm(Tensors{Tensor::full({3}, std::nan("")), Tensor::ones({9})})));
}

TEST(OptimizerErrors, NameTheMismatch) {
  Tensors p = {Tensor::zeros({4})}, m = {Tensor::zeros({4})}, v = {Tensor::zeros({4})};
  const Tensors g = {Tensor::zeros({4})};
  EXPECT_THAT([&] { adamw_step(p, {}, m, v, {}); },
              ThrowsMessage<ShapeError>("adamw_step: 0 gradients for 1 tensors"));
  EXPECT_THAT([&] { sgd_step(p, g, {}, {.momentum = 0.9}); },
              ThrowsMessage<ShapeError>("sgd_step: 0 state tensors for 1 tensors"));
  EXPECT_THROW(adamw_step(p, Tensors{Tensor::zeros({5})}, m, v, {}), ShapeError);
  EXPECT_THROW(adamw_step(p, Tensors{Tensor::zeros({4}, DType::f64)}, m, v, {}), DTypeError);
  Tensors wrong = {Tensor::zeros({3})};
  EXPECT_THROW(adamw_step(p, g, m, wrong, {}), ShapeError);
  Tensors strided = {Tensor::zeros({4, 2}).slice(1, 0, 1).squeeze(1)};
  EXPECT_THAT([&] { lerp_(strided, g, 0.5); },
              ThrowsMessage<ShapeError>("lerp_: a tensor of shape [4] and strides [2] is not dense"));
  EXPECT_THAT([&] { adamw_step(p, g, m, v, {.step = 0}); },
              ThrowsMessage<ValueError>("adamw_step: updates count from 1, not 0"));
  EXPECT_THAT([&] { adamw_step(p, g, m, v, {.beta1 = 1}); },
              ThrowsMessage<ValueError>("adamw_step: beta1 is 1, not in [0, 1)"));
  EXPECT_THAT([&] { sgd_step(p, g, m, {.nesterov = true}); },
              ThrowsMessage<ValueError>("sgd_step: nesterov needs a momentum above 0"));
  Tensors integers = {Tensor::zeros({4}, DType::i64)};
  EXPECT_THROW(lerp_(integers, integers, 0.5), DTypeError);
}

}  // namespace
}  // namespace gyre::kernels
