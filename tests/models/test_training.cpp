#include "autograd/ops/loss.h"
#include "kernels/optimizer.h"
#include "layers/eq_linear.h"
#include "layers/equivariance.h"
#include "tests/models/model_testing.h"

namespace gyre {
namespace {

using testing::images_for;
using testing::rel_l2;
using testing::small_config;

/// AdamW over the parameters of a model, decay as they ask for.
class AdamW {
 public:
  explicit AdamW(Model& model) {
    for (const auto& [name, parameter] : model.parameters()) {
      parameters_.push_back(parameter);
      m_.push_back(Tensor::zeros(parameter->variable.shape(), parameter->variable.dtype()));
      v_.push_back(m_.back().clone());
    }
  }

  void step(double lr, double grad_scale = 1) {
    ++step_;
    for (const bool decay : {true, false}) {
      std::vector<Tensor> data, grads, m, v;
      for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (parameters_[i]->decay != decay) continue;
        data.push_back(parameters_[i]->variable.data());
        grads.push_back(parameters_[i]->variable.grad());
        m.push_back(m_[i]);
        v.push_back(v_[i]);
      }
      kernels::adamw_step(
          data, grads, m, v,
          {.lr = lr, .weight_decay = decay ? 0.05 : 0, .step = step_, .grad_scale = grad_scale});
    }
    for (Parameter* parameter : parameters_) parameter->variable.zero_grad();
  }

 private:
  std::vector<Parameter*> parameters_;
  std::vector<Tensor> m_, v_;
  std::int64_t step_ = 0;
};

std::vector<const EqProduct*> eq_layers(Model& model) {
  std::vector<const EqProduct*> layers;
  for (const auto& [name, module] : model.modules())
    if (const auto* layer = dynamic_cast<const EqProduct*>(module)) layers.push_back(layer);
  return layers;
}

void expect_rebuilds(Model& model, int count) {
  for (const EqProduct* layer : eq_layers(model)) EXPECT_EQ(layer->rebuilds(), count);
}

struct Trained {
  const char *name, *group;
  int updates;
};

class Training : public ::testing::TestWithParam<Trained> {};

TEST_P(Training, KeepsTheSymmetryExact) {
  const Group& group = Group::get(GetParam().group);
  ModelConfig config = GetParam().name == std::string("eq_swin")
                           ? testing::small_swin("eq_swin", group.name())
                           : small_config("eq_vit", group.name());
  config.width = 16;
  config.mlp_ratio = 1;
  const auto model = make_model(config, 1);
  model->to(DType::f64);
  AdamW optimizer(*model);
  const Tensor labels = Tensor::from<std::int64_t>({0, 1, 2, 3}, {4}), images = images_for(config, 4);
  double first = 0, last = 0;
  for (int update = 0; update < GetParam().updates; ++update) {
    const Variable loss = cross_entropy((*model)(Variable(images)), labels, 0.1);
    loss.backward();
    optimizer.step(5e-3);
    last = loss.data().item();
    if (update == 0) first = last;
  }
  EXPECT_LT(last, 0.6 * first);
  const Tensor fresh = images_for(config, 3, 50);
  EXPECT_LT(worst_nmae(check_equivariance(*model, group, fresh, Meaning::image(), Meaning::invariant())),
            1e-10);
  model->to(DType::f32);
  EXPECT_LT(worst_nmae(check_equivariance(*model, group, fresh.to(DType::f32), Meaning::image(),
                                          Meaning::invariant())),
            1e-5);
}

INSTANTIATE_TEST_SUITE_P(Groups, Training,
                         ::testing::Values(Trained{"eq_vit", "mirror", 200}, Trained{"eq_vit", "c4", 200},
                                           Trained{"eq_vit", "d4", 200}, Trained{"eq_swin", "c4", 100},
                                           Trained{"eq_swin", "d4", 100}),
                         [](const auto& test) {
                           return fmt::format("{}_{}", test.param.name, test.param.group);
                         });

TEST(Accumulation, BuildsPlanesOncePerUpdate) {
  for (const char* backend : {"flash", "naive"}) {
    ModelConfig config = small_config("eq_vit", "c4", "token");
    config.backend = backend;
    const auto model = make_model(config, 1);
    AdamW optimizer(*model);
    const Tensor labels = Tensor::from<std::int64_t>({0, 1}, {2});
    ASSERT_EQ(eq_layers(*model).size(), 1u + 2 * 4);
    for (int update = 1; update <= 3; ++update) {
      for (std::uint64_t micro = 0; micro < 4; ++micro)
        cross_entropy((*model)(Variable(images_for(config, 2, micro, DType::f32))), labels).backward();
      expect_rebuilds(*model, update);
      optimizer.step(1e-3, 0.25);
    }
    // Evaluation after the last update builds once more, and then never again.
    const NoGrad no_grad;
    for (std::uint64_t batch = 0; batch < 3; ++batch)
      (*model)(Variable(images_for(config, 2, batch, DType::f32)));
    expect_rebuilds(*model, 4);
  }
}

TEST(Accumulation, FourMicroStepsAreOneBatch) {
  const ModelConfig config = small_config("eq_vit", "c4");
  const auto whole = make_model(config, 1), parts = make_model(config, 1);
  whole->to(DType::f64);
  parts->to(DType::f64);
  const Tensor images = images_for(config, 4), labels = Tensor::from<std::int64_t>({0, 1, 2, 3}, {4});
  cross_entropy((*whole)(Variable(images)), labels).backward();
  for (std::int64_t i = 0; i < 4; ++i)
    cross_entropy((*parts)(Variable(images.slice(0, i, i + 1))), labels.slice(0, i, i + 1))
        .backward(Tensor::full({1}, 0.25, DType::f64));
  for (const auto& [name, parameter] : whole->parameters())
    EXPECT_LT(rel_l2(testing::parameter(*parts, name).grad(), parameter->variable.grad()), 1e-11) << name;
}

TEST(WeightChanges, ReachTheLogitsAndComeBack) {
  const ModelConfig config = small_config("eq_vit", "c4", "token");
  const auto model = make_model(config, 1), other = make_model(config, 2);
  const Variable images(images_for(config, 2, 1, DType::f32));
  const NoGrad no_grad;
  const auto logits = [&] { return (*model)(images).data(); };
  const Tensor own = logits(), theirs = (*other)(images).data();
  ASSERT_GT(rel_l2(theirs, own), 0.1);
  expect_rebuilds(*model, 1);

  // Averaged weights exchange storages, twice.
  TensorMap raw;
  for (const auto& [name, parameter] : model->parameters()) {
    raw[name] = parameter->variable.data();
    parameter->variable.set_data(other->state().at(name).clone());
  }
  EXPECT_EQ(logits().to_vector(), theirs.to_vector());
  expect_rebuilds(*model, 2);
  for (const auto& [name, parameter] : model->parameters()) parameter->variable.set_data(raw.at(name));
  EXPECT_EQ(logits().to_vector(), own.to_vector());
  expect_rebuilds(*model, 3);

  // A checkpoint writes in place.
  model->load_state(other->state());
  EXPECT_EQ(logits().to_vector(), theirs.to_vector());
  expect_rebuilds(*model, 4);

  // One element of one weight: only that layer rebuilds.
  Tensor filter = testing::parameter(*model, "patch_embed.proj.weight").data();
  filter.mutable_data<float>()[0] += 1;
  EXPECT_GT(rel_l2(logits(), theirs), 1e-4);
  int rebuilt = 0;
  for (const EqProduct* layer : eq_layers(*model)) rebuilt += layer->rebuilds() == 5;
  EXPECT_EQ(rebuilt, 1);
}

}  // namespace
}  // namespace gyre
