#include <gtest/gtest.h>

#include <array>

#include "autograd/ops/loss.h"
#include "kernels/optimizer.h"
#include "layers/equivariance.h"
#include "layers/stochastic.h"
#include "tests/cuda/device.h"
#include "tests/models/model_testing.h"

namespace gyre {
namespace {

using testing::images_for;
using testing::rel_l2;
using testing::small_config;
using testing::small_swin;

const Device gpu = device_under_test();

struct Case {
  const char *name, *group, *backend;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}_{}", info.param.name, info.param.group, info.param.backend);
}

ModelConfig config_of(const Case& given) {
  const std::string name = given.name;
  ModelConfig config = name.find("swin") == std::string::npos ? small_config(name, given.group, "token")
                                                              : small_swin(name, given.group);
  if (name.find("eq_") == std::string::npos) config.given.erase("group");
  config.drop_path = 0.2;
  config.given.insert("drop_path");
  return config;
}

std::unique_ptr<Model> model_on(Device device, DType dtype, const Case& given) {
  auto model = make_model(config_of(given), 1);
  model->set_backend(kernels::parse_eq_backend(given.backend));
  model->to(dtype);
  model->to(device);
  return model;
}

/// Logits, then the gradient of each parameter.
std::vector<Tensor> step(Model& model, const Tensor& images, const Tensor& labels) {
  const std::array<std::int64_t, 3> samples{0, 1, 2};
  const StochasticScope scope(7, 3, samples);
  const Variable logits = model(Variable(images));
  cross_entropy(logits, labels, 0.1).backward();
  std::vector<Tensor> results{logits.data()};
  for (const auto& [name, parameter] : model.parameters()) {
    results.push_back(parameter->variable.grad());
    parameter->variable.zero_grad();
  }
  return results;
}

class CudaModel : public ::testing::TestWithParam<Case> {};

TEST_P(CudaModel, GradientsMatchTheCpu) {
  const ModelConfig config = config_of(GetParam());
  const Tensor labels = Tensor::from<std::int64_t>({0, 3, 1}, {3});
  const auto exact = model_on(Device::cpu(), DType::f64, GetParam());
  const std::vector<Tensor> wanted = step(*exact, images_for(config, 3), labels);
  for (const DType dtype : {DType::f64, DType::f32}) {
    const auto model = model_on(gpu, dtype, GetParam());
    const Tensor images = images_for(config, 3).to(dtype).to(gpu);
    for (const bool training : {true, false}) {
      model->train(training);
      const std::vector<Tensor> got = step(*model, images, labels.to(gpu));
      if (!training) continue;
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        SCOPED_TRACE(fmt::format("{}, result {}", dtype, i));
        ASSERT_TRUE(got[i].defined());
        EXPECT_EQ(got[i].device(), gpu);
        EXPECT_LT(rel_l2(got[i].to(Device::cpu()), wanted[i]), dtype == DType::f64 ? 1e-11 : 2e-4);
      }
    }
  }
}

TEST_P(CudaModel, StepsRepeatBitForBit) {
  const auto model = model_on(gpu, DType::f32, GetParam());
  const Tensor images = images_for(config_of(GetParam()), 3).to(DType::f32).to(gpu);
  const Tensor labels = Tensor::from<std::int64_t>({0, 3, 1}, {3}).to(gpu);
  const std::vector<Tensor> first = step(*model, images, labels), second = step(*model, images, labels);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].to_vector(), second[i].to_vector()) << i;
}

INSTANTIATE_TEST_SUITE_P(All, CudaModel,
                         ::testing::Values(Case{"vit", "c1", "auto"}, Case{"eq_vit", "c4", "flash"},
                                           Case{"eq_vit", "d4", "naive"}, Case{"eq_vit", "d4", "flash"},
                                           Case{"swin", "c1", "auto"}, Case{"eq_swin", "c4", "flash"},
                                           Case{"eq_swin", "d4", "auto"}),
                         name_of);

TEST(CudaModel, MovesBackAndForth) {
  const auto model = model_on(Device::cpu(), DType::f64, {"eq_swin", "c4", "flash"});
  const ModelConfig config = config_of({"eq_swin", "c4", "flash"});
  model->eval();
  const Tensor images = images_for(config, 2);
  const Tensor before = (*model)(Variable(images)).data();
  model->to(gpu);
  const Tensor there = (*model)(Variable(images.to(gpu))).data();
  EXPECT_LT(rel_l2(there.to(Device::cpu()), before), 1e-12);
  model->to(Device::cpu());
  EXPECT_EQ((*model)(Variable(images)).data().to_vector(), before.to_vector());
}

}  // namespace
}  // namespace gyre
