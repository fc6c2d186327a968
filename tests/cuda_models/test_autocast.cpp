#include <gmock/gmock.h>

#include <array>

#include "autograd/autocast.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/linear_algebra.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/reduction.h"
#include "kernels/elementwise.h"
#include "kernels/typed_copy.h"
#include "layers/stochastic.h"
#include "tests/models/model_testing.h"

namespace gyre {
namespace {

using testing::images_for;
using testing::random;
using testing::rel_l2;

const Device gpu = Device::cuda();

/// Largest relative error of one rounding.
double rounding(DType dtype) { return dtype == DType::f16 ? 0x1p-11 : 0x1p-8; }

Tensor on_cpu(const Tensor& x) { return x.to(Device::cpu()); }

struct Case {
  const char *name, *group, *backend;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}_{}", info.param.name, info.param.group, info.param.backend);
}

std::unique_ptr<Model> model_on(Device device, DType dtype, const Case& given, ModelConfig* config) {
  const std::string name = given.name;
  *config = name.find("swin") == std::string::npos ? testing::small_config(name, given.group, "token")
                                                   : testing::small_swin(name, given.group);
  if (name.find("eq_") == std::string::npos) config->given.erase("group");
  config->drop_path = 0.2;
  config->dropout = 0.1;
  config->given.insert({"drop_path", "dropout"});
  auto model = make_model(*config, 1);
  model->set_backend(kernels::parse_eq_backend(given.backend));
  model->to(dtype);
  model->to(device);
  return model;
}

/// Logits, then the gradient of each parameter, of a loss multiplied by `scale` in between.
std::vector<Tensor> step(Model& model, const Tensor& images, std::optional<DType> products, double scale) {
  const std::array<std::int64_t, 3> samples{0, 1, 2};
  const Tensor labels = Tensor::from<std::int64_t>({0, 3, 1}, {3}).to(images.device());
  const StochasticScope draws(7, 3, samples);
  const AutocastScope scope(products);
  const Variable logits = model(Variable(images));
  affine(cross_entropy(logits, labels, 0.1), scale).backward();
  std::vector<Tensor> results{logits.data()};
  for (const auto& [name, parameter] : model.parameters()) {
    results.push_back(kernels::affine(parameter->variable.grad(), 1 / scale, 0));
    parameter->variable.zero_grad();
  }
  return results;
}

class AutocastModel : public ::testing::TestWithParam<Case> {};

TEST_P(AutocastModel, GradientsAreExactUpToRoundings) {
  ModelConfig config;
  const auto exact = model_on(Device::cpu(), DType::f64, GetParam(), &config);
  const Tensor images = images_for(config, 3);
  const std::vector<Tensor> wanted = step(*exact, images, std::nullopt, 1);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto model = model_on(gpu, DType::f32, GetParam(), &config);
    const std::vector<Tensor> got = step(*model, images.to(DType::f32).to(gpu), dtype, 1024);
    ASSERT_EQ(got.size(), wanted.size());
    const auto named = model->parameters();
    double difference = 0, magnitude = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(fmt::format("{}, {}", dtype, i == 0 ? "logits" : named[i - 1].name));
      EXPECT_EQ(got[i].dtype(), DType::f32);
      EXPECT_EQ(got[i].device(), gpu);
      const double error = rel_l2(on_cpu(got[i]), wanted[i]);
      // Small gradients are differences of larger ones, which two dozen products and transforms round.
      EXPECT_LT(error, 40 * rounding(dtype));
      EXPECT_GT(error, 0) << "nothing was rounded";
      if (i == 0) continue;
      EXPECT_EQ(named[i - 1].parameter->variable.dtype(), DType::f32);
      const std::vector<double> a = on_cpu(got[i]).to_vector(), b = wanted[i].to_vector();
      for (std::size_t k = 0; k < a.size(); ++k) {
        difference += (a[k] - b[k]) * (a[k] - b[k]);
        magnitude += b[k] * b[k];
      }
    }
    EXPECT_LT(std::sqrt(difference / magnitude), 6 * rounding(dtype)) << name_of(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AutocastModel,
                         ::testing::Values(Case{"vit", "c1", "auto"}, Case{"eq_vit", "c4", "flash"},
                                           Case{"eq_vit", "c4", "naive"}, Case{"eq_vit", "d4", "flash"},
                                           Case{"swin", "c1", "auto"}, Case{"eq_swin", "c4", "flash"},
                                           Case{"eq_swin", "d4", "naive"}),
                         name_of);

TEST(Autocast, ScopesNest) {
  EXPECT_EQ(autocast_type(), std::nullopt);
  const Variable x(random({2, 3}, 1, DType::f32).to(gpu)), w(random({4, 3}, 2, DType::f32).to(gpu));
  const auto type = [&] { return linear(x, w, {}).dtype(); };
  {
    const AutocastScope outer(DType::bf16);
    EXPECT_EQ(type(), DType::bf16);
    {
      const AutocastScope inner(DType::f16);
      EXPECT_EQ(type(), DType::f16);
    }
    {
      const AutocastScope off(std::nullopt);
      EXPECT_EQ(type(), DType::f32);
    }
    EXPECT_THROW(AutocastScope(DType::f32), DTypeError);
    EXPECT_EQ(autocast_type(), DType::bf16);
  }
  EXPECT_EQ(type(), DType::f32);
}

TEST(Autocast, CastReturnsGradientsInTheTypeOfItsInput) {
  const Variable x(random({3, 2}, 3, DType::f32).to(gpu), true);
  EXPECT_EQ(cast(x, DType::f32).state(), x.state());
  EXPECT_EQ(widen(x).state(), x.state());
  const Variable y = cast(x, DType::bf16);
  EXPECT_EQ(on_cpu(y.data()).to_vector(), on_cpu(x.data().to(DType::bf16)).to_vector());
  sum(widen(y)).backward();
  EXPECT_EQ(x.grad().dtype(), DType::f32);
  EXPECT_EQ(on_cpu(x.grad()).to_vector(), std::vector<double>(6, 1.0));
}

/// Runs `product` of x [2, 5, 8] and parameters w and b under autocast, and the same in f32.
template <class Product>
void expect_gradients_in_f32(const Shape& w_shape, const Shape& b_shape, const Product& product) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Variable x(random({2, 5, 8}, 4, DType::f32).to(gpu), true);
    // Already of the type, so that the same numbers enter both.
    const auto parameter = [&](const Shape& shape, std::uint64_t index) {
      return Variable(random(shape, index, DType::f32).to(dtype).to(DType::f32).to(gpu), true);
    };
    const Variable w = parameter(w_shape, 5), b = parameter(b_shape, 6);
    std::vector<Tensor> wanted;
    for (const bool cast_down : {false, true}) {
      const Variable given = cast(x, dtype);
      const AutocastScope scope(cast_down ? std::optional(dtype) : std::nullopt);
      const Variable y = product(cast_down ? given : widen(given), w, b);
      EXPECT_EQ(y.dtype(), cast_down ? dtype : DType::f32);
      sum(mul(widen(y), widen(y))).backward();
      const std::vector<Tensor> got{y.data(), x.grad(), w.grad(), b.grad()};
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        SCOPED_TRACE(fmt::format("{}, result {}", dtype, i));
        EXPECT_EQ(got[i].dtype(), i == 0 ? dtype : DType::f32);
        EXPECT_LT(rel_l2(on_cpu(got[i]), wanted[i]), 4 * rounding(dtype));
      }
      if (!cast_down)
        for (const Tensor& t : got) wanted.push_back(on_cpu(t).clone());
      for (const Variable* v : {&x, &w, &b}) Variable(*v).zero_grad();
    }
  }
}

TEST(Autocast, LinearKeepsItsMasters) {
  expect_gradients_in_f32(
      {6, 8}, {6}, [](const Variable& x, const Variable& w, const Variable& b) { return linear(x, w, b); });
}

TEST(Autocast, EqLinearKeepsItsMasters) {
  const Group& group = Group::get("c4");
  for (const EqBackend backend : {EqBackend::flash, EqBackend::naive})
    expect_gradients_in_f32({3, 2, 4}, {3}, [&](const Variable& x, const Variable& w, const Variable& b) {
      return eq_linear(group, x, w, b, {backend});
    });
}

TEST(Autocast, AttentionIsThatOfItsPlainTwin) {
  const Tensor values = random({4, 6, 3, 2, 4}, 7, DType::f32).to(gpu);
  const Tensor bias_values = random({2, 6, 6}, 8, DType::f32).to(gpu);
  const Tensor mask = random({2, 6, 6}, 9, DType::f32).to(gpu);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const AutocastScope scope(dtype);
    std::vector<Tensor> wanted;
    for (const auto function : {attention_reference, attention}) {
      const Variable qkv(values, true), bias(bias_values, true);
      const Variable y = function(qkv, bias, mask);
      EXPECT_EQ(y.dtype(), dtype);
      sum(mul(widen(y), widen(y))).backward();
      const std::vector<Tensor> got{y.data(), qkv.grad(), bias.grad()};
      for (std::size_t i = 0; i < wanted.size(); ++i)
        EXPECT_LT(rel_l2(on_cpu(got[i]), wanted[i]), 4 * rounding(dtype)) << i;
      if (wanted.empty())
        for (const Tensor& t : got) wanted.push_back(on_cpu(t));
    }
  }
}

TEST(Autocast, LayersCopyTheirWeightsOncePerUpdate) {
  const Group& group = Group::get("c4");
  const Variable x(random({3, 8}, 10, DType::f32).to(gpu)), w(random({5, 8}, 11, DType::f32).to(gpu), true),
      b(random({5}, 12, DType::f32).to(gpu), true), filter(random({3, 2, 4}, 13, DType::f32).to(gpu), true);
  const auto packed = std::make_shared<kernels::PackedWeight>();
  const auto planes = std::make_shared<kernels::EqPlanes>();
  const AutocastScope scope(DType::bf16);
  for (int update = 1; update <= 3; ++update) {
    for (int part = 0; part < 2; ++part) {
      const Variable y = sum(widen(linear(x, w, b, packed))) +
                         sum(widen(eq_linear(group, x, filter, {}, {EqBackend::flash}, planes)));
      y.backward();
    }
    {
      const NoGrad evaluation;
      linear(x, w, b, packed);
      eq_linear(group, x, filter, {}, {EqBackend::flash}, planes);
    }
    EXPECT_EQ(packed->copies().weight.renewals(), update);
    EXPECT_EQ(packed->copies().bias.renewals(), update);
    EXPECT_EQ(planes->copies().weight.renewals(), update);
    EXPECT_EQ(planes->rebuilds(), update);
    for (const Variable* parameter : {&w, &b, &filter}) {
      Tensor data = parameter->data();
      kernels::add_into(data, parameter->grad(), -0.1);
    }
    const Tensor y = linear(x, w, b, packed).data();
    EXPECT_EQ(on_cpu(y).to_vector(), on_cpu(linear(x, w, b).data()).to_vector());
  }
  planes->clear();
  eq_linear(group, x, filter, {}, {EqBackend::flash}, planes);
  EXPECT_EQ(planes->copies().weight.renewals(), 4);
}

TEST(Autocast, TheCpuComputesNo16BitProducts) {
  const AutocastScope scope(DType::f16);
  const Variable x(random({2, 3}, 14, DType::f32)), w(random({4, 3}, 15, DType::f32));
  try {
    linear(x, w, {});
    FAIL();
  } catch (const DTypeError& error) {
    EXPECT_STREQ(error.what(), "linear takes f32 or f64, not f16");
  }
}

}  // namespace
}  // namespace gyre
