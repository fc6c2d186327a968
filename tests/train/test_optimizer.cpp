#include "train/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random.h"

namespace gyre {
namespace {

/// Two parameters of the decay group, one without decay and one that never gets a gradient.
class Parameters : public Module {
 public:
  explicit Parameters(DType dtype = DType::f64, std::uint64_t seed = 1) {
    RandomStream stream(seed, Purpose::test);
    a = &add_parameter("a", random_normal({3, 5}, 1, stream, dtype));
    b = &add_parameter("b", random_normal({2, 2}, 1, stream, dtype));
    bias = &add_parameter("bias", random_normal({7}, 1, stream, dtype));
    unused = &add_parameter("unused", random_normal({2, 3}, 1, stream, dtype));
  }
  Variable forward(const Variable& x) override { return x; }
  std::string_view kind() const override { return "Parameters"; }

  void set_gradients(std::uint64_t seed, double scale = 1) {
    RandomStream stream(seed, Purpose::test, 7);
    for (Parameter* p : {a, b, bias}) {
      p->variable.mutable_grad() = random_normal(p->variable.shape(), scale, stream, p->variable.dtype());
    }
  }
  double true_norm() const {
    double sum = 0;
    for (const Parameter* p : {a, b, bias}) {
      for (const double g : p->variable.grad().to_vector()) sum += g * g;
    }
    return std::sqrt(sum);
  }

  Parameter *a, *b, *bias, *unused;
};

OptimizerConfig adamw_config() {
  OptimizerConfig config;
  config.weight_decay = 0.1;
  config.beta1 = 0.8;
  config.beta2 = 0.95;
  config.eps = 1e-6;
  return config;
}

/// AdamW for one value, written out.
struct AdamWOracle {
  double p, m = 0, v = 0;
  void step(double g, double lr, double decay, int t, const OptimizerConfig& c) {
    p -= lr * decay * p;
    m = c.beta1 * m + (1 - c.beta1) * g;
    v = c.beta2 * v + (1 - c.beta2) * g * g;
    const double mh = m / (1 - std::pow(c.beta1, t)), vh = v / (1 - std::pow(c.beta2, t));
    p -= lr * mh / (std::sqrt(vh) + c.eps);
  }
};

TEST(Optimizer, AdamWFollowsThePaper) {
  Parameters module;
  const OptimizerConfig config = adamw_config();
  const auto optimizer = make_optimizer(module, config, 0);
  EXPECT_EQ(optimizer->name(), "adamw");
  std::vector<Parameter*> parameters{module.a, module.b, module.bias};
  std::vector<std::vector<AdamWOracle>> oracle;
  for (Parameter* p : parameters) {
    oracle.emplace_back();
    for (const double x : p->variable.data().to_vector()) oracle.back().push_back({x});
  }
  for (int t = 1; t <= 5; ++t) {
    module.set_gradients(static_cast<std::uint64_t>(t));
    const double lr = 0.01 * t;
    const StepResult result = optimizer->step(lr);
    EXPECT_TRUE(result.stepped);
    EXPECT_NEAR(result.grad_norm, module.true_norm(), 1e-12);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto gradient = parameters[i]->variable.grad().to_vector();
      const auto value = parameters[i]->variable.data().to_vector();
      for (std::size_t j = 0; j < value.size(); ++j) {
        oracle[i][j].step(gradient[j], lr, i < 2 ? config.weight_decay : 0, t, config);
        EXPECT_NEAR(value[j], oracle[i][j].p, 1e-12) << i << ' ' << j << ' ' << t;
      }
    }
  }
  EXPECT_EQ(optimizer->updates(), 5);
}

TEST(Optimizer, SgdMomentumIsPlainOrNesterov) {
  for (const bool nesterov : {false, true}) {
    Parameters module;
    OptimizerConfig config;
    config.name = "sgd";
    config.momentum = 0.7;
    config.nesterov = nesterov;
    config.weight_decay = 0.3;
    const auto optimizer = make_optimizer(module, config, 0);
    auto expected = module.a->variable.data().to_vector();
    std::vector<double> buffer(expected.size(), 0.0);
    for (int t = 1; t <= 3; ++t) {
      module.set_gradients(static_cast<std::uint64_t>(t));
      const auto gradient = module.a->variable.grad().to_vector();
      optimizer->step(0.1);
      for (std::size_t j = 0; j < expected.size(); ++j) {
        const double g = gradient[j] + 0.3 * expected[j];
        buffer[j] = 0.7 * buffer[j] + g;
        expected[j] -= 0.1 * (nesterov ? g + 0.7 * buffer[j] : buffer[j]);
      }
    }
    const auto value = module.a->variable.data().to_vector();
    for (std::size_t j = 0; j < expected.size(); ++j) EXPECT_NEAR(value[j], expected[j], 1e-12) << nesterov;
  }
}

TEST(Optimizer, DecayTouchesOnlyItsGroup) {
  Parameters module;
  module.set_gradients(3, 0);  // zero gradients: only decay moves anything
  const auto a = module.a->variable.data().to_vector(), bias = module.bias->variable.data().to_vector();
  const auto unused = module.unused->variable.data().to_vector();
  make_optimizer(module, adamw_config(), 0)->step(0.5);
  EXPECT_NEAR(module.a->variable.data().to_vector()[0], a[0] * (1 - 0.5 * 0.1), 1e-14);
  EXPECT_EQ(module.bias->variable.data().to_vector(), bias);
  EXPECT_EQ(module.unused->variable.data().to_vector(), unused);
}

TEST(Optimizer, ClipsTheWholeGradientAndReportsTheTrueNorm) {
  OptimizerConfig config;
  config.name = "sgd";
  config.momentum = 0;
  config.weight_decay = 0;
  for (const double scale : {1.0, 0.25}) {
    Parameters module;
    module.set_gradients(5, 10);
    const double norm = scale * module.true_norm();
    ASSERT_GT(norm, 2);
    const auto before = module.bias->variable.data().to_vector(),
               gradient = module.bias->variable.grad().to_vector();
    const StepResult result = make_optimizer(module, config, 2)->step(0.1, scale);
    EXPECT_NEAR(result.grad_norm, norm, 1e-12 * norm);
    const auto after = module.bias->variable.data().to_vector();
    for (std::size_t j = 0; j < after.size(); ++j) {
      EXPECT_NEAR(after[j], before[j] - 0.1 * gradient[j] * scale * 2 / norm, 1e-13);
    }
  }
}

TEST(Optimizer, SmallGradientsAreNotClipped) {
  Parameters clipped, free;
  clipped.set_gradients(5, 1e-3);
  free.set_gradients(5, 1e-3);
  make_optimizer(clipped, adamw_config(), 1)->step(0.1);
  make_optimizer(free, adamw_config(), 0)->step(0.1);
  EXPECT_EQ(clipped.a->variable.data().to_vector(), free.a->variable.data().to_vector());
}

TEST(Optimizer, NonFiniteGradientChangesNothing) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Parameters module(DType::f32);
    const auto optimizer = make_optimizer(module, adamw_config(), 1);
    module.set_gradients(1);
    optimizer->step(0.1);
    const auto a = module.a->variable.data().to_vector();
    const auto moment = optimizer->state().at("exp_avg.a").to_vector();
    module.set_gradients(2);
    module.bias->variable.mutable_grad().slice(0, 3, 4).fill_(bad);
    const StepResult result = optimizer->step(0.1);
    EXPECT_FALSE(result.stepped);
    EXPECT_FALSE(std::isfinite(result.grad_norm));
    EXPECT_EQ(optimizer->updates(), 1);
    EXPECT_EQ(module.a->variable.data().to_vector(), a);
    EXPECT_EQ(optimizer->state().at("exp_avg.a").to_vector(), moment);
  }
}

TEST(Optimizer, StateContinuesBitForBit) {
  for (const char* name : {"adamw", "sgd"}) {
    OptimizerConfig config = adamw_config();
    config.name = name;
    Parameters one(DType::f32), two(DType::f32);
    const auto first = make_optimizer(one, config, 1);
    for (std::uint64_t t = 1; t <= 3; ++t) {
      one.set_gradients(t);
      first->step(0.01);
    }
    const auto second = make_optimizer(two, config, 1);
    two.load_state(one.state());
    second->load_state(first->state());
    EXPECT_EQ(second->updates(), 3);
    for (std::uint64_t t = 4; t <= 6; ++t) {
      one.set_gradients(t);
      two.set_gradients(t);
      first->step(0.01);
      second->step(0.01);
    }
    EXPECT_EQ(one.a->variable.data().to_vector(), two.a->variable.data().to_vector()) << name;
    EXPECT_EQ(one.bias->variable.data().to_vector(), two.bias->variable.data().to_vector()) << name;
  }
}

TEST(Optimizer, LoadedStateIsACopy) {
  Parameters module;
  const auto optimizer = make_optimizer(module, adamw_config(), 1);
  TensorMap state;
  for (const auto& [name, tensor] : optimizer->state()) state[name] = tensor.clone();
  optimizer->load_state(state);
  state.at("exp_avg.a").fill_(9);
  EXPECT_EQ(optimizer->state().at("exp_avg.a").at({0, 0}), 0);
}

std::string load_error(Optimizer& optimizer, const TensorMap& state) {
  try {
    optimizer.load_state(state);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Optimizer, WrongStateIsNamedAndChangesNothing) {
  Parameters module;
  const auto optimizer = make_optimizer(module, adamw_config(), 1);
  TensorMap good;
  for (const auto& [name, tensor] : optimizer->state()) good[name] = tensor.clone();
  good.at("exp_avg.a").fill_(5);

  TensorMap state = good;
  state.erase("exp_avg_sq.bias");
  EXPECT_EQ(load_error(*optimizer, state), "adamw state: tensor exp_avg_sq.bias is missing");
  state = good;
  state["momentum.a"] = Tensor::zeros({1});
  EXPECT_EQ(load_error(*optimizer, state), "adamw state: unknown tensor momentum.a");
  state = good;
  state["exp_avg.b"] = Tensor::zeros({4}, DType::f64);
  EXPECT_EQ(load_error(*optimizer, state), "adamw state: tensor exp_avg.b has shape [4], not [2, 2]");
  state = good;
  state["updates"] = Tensor::from({std::int64_t{-2}}, {1});
  EXPECT_EQ(load_error(*optimizer, state), "adamw state: update count -2 is negative");
  EXPECT_EQ(optimizer->state().at("exp_avg.a").at({0, 0}), 0);
}

TEST(Optimizer, DescribesItsGroups) {
  Parameters module;
  EXPECT_EQ(make_optimizer(module, {}, 1)->describe(),
            "decay: 3 tensors, 25 values; no decay: 1 tensor, 7 values");
}

TEST(Optimizer, ZeroGradClearsEveryGradient) {
  Parameters module;
  module.set_gradients(1);
  const auto optimizer = make_optimizer(module, adamw_config(), 0);
  optimizer->zero_grad();
  const Tensor& grad = module.a->variable.grad();
  EXPECT_TRUE(!grad.defined() || grad.to_vector() == std::vector<double>(15, 0.0));
}

TEST(Optimizer, UnknownNameIsRefused) {
  Parameters module;
  OptimizerConfig config;
  config.name = "lion";
  try {
    make_optimizer(module, config, 0);
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "unknown optimizer 'lion'; known: adamw, sgd");
  }
}

}  // namespace
}  // namespace gyre
