#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograd/autocast.h"
#include "layers/eq_linear.h"
#include "models/registry.h"
#include "tests/train/support.h"
#include "train/step.h"

namespace gyre {
namespace {

const Device gpu = Device::cuda();

Config amp_config(const std::string& amp, std::int64_t accumulation = 1) {
  Config config = test::tiny_config("");
  config.model.image_size = 8;
  config.model.classes = 4;
  config.model.backend = "flash";
  config.model.dropout = 0.1;
  config.train.amp = amp;
  config.train.accumulation = accumulation;
  return config;
}

/// Noise over the patterns of four classes.
Batch random_batch(std::int64_t size, std::uint64_t index = 1) {
  RandomStream stream(3, Purpose::test, index);
  Tensor images = random_normal({size, 1, 8, 8}, 0.5, stream);
  float* pixels = images.mutable_data<float>();
  std::vector<std::int64_t> labels;
  Batch batch;
  for (std::int64_t i = 0; i < size; ++i) {
    labels.push_back(static_cast<std::int64_t>(stream.below(4)));
    for (int p = 0; p < 64; ++p)
      pixels[i * 64 + p] +=
          static_cast<float>(test::tiny_pattern(static_cast<int>(labels.back()), p / 8, p % 8)) / 100 - 1;
    batch.ids.push_back(static_cast<std::int64_t>(1000 * index) + 7 * i);
  }
  batch.images = images.to(gpu);
  batch.labels = Tensor::from(labels, {size}).to(gpu);
  return batch;
}

TensorMap on_cpu(const TensorMap& state) {
  TensorMap copies;
  for (const auto& [name, tensor] : state) copies[name] = tensor.to(Device::cpu()).clone();
  return copies;
}

struct Record {
  TensorMap weights, moments, averages;
  std::int64_t updates, ema_updates;
};

Record record_of(Learner& learner) {
  return {on_cpu(learner.model().state()), on_cpu(learner.optimizer().state()),
          on_cpu(learner.ema()->state()), learner.optimizer().updates(), learner.ema()->updates()};
}

void expect_same(const Record& a, const Record& b) {
  EXPECT_TRUE(test::same_bits(a.weights, b.weights));
  EXPECT_TRUE(test::same_bits(a.moments, b.moments));
  EXPECT_TRUE(test::same_bits(a.averages, b.averages));
  EXPECT_EQ(a.updates, b.updates);
  EXPECT_EQ(a.ema_updates, b.ema_updates);
}

TEST(Amp, MastersMomentsAndAveragesStayInF32) {
  for (const char* amp : {"bf16", "fp16"}) {
    Learner learner(amp_config(amp), gpu);
    ASSERT_TRUE(learner.step(random_batch(12), 0, 1e-2).stepped);
    for (const auto& [name, parameter] : learner.model().parameters()) {
      EXPECT_EQ(parameter->variable.dtype(), DType::f32) << name;
      EXPECT_EQ(parameter->variable.grad().dtype(), DType::f32) << name;
    }
    for (const auto& [name, tensor] : learner.optimizer().state())
      EXPECT_EQ(tensor.dtype(), name == "updates" ? DType::i64 : DType::f32) << name;
    for (const auto& [name, tensor] : learner.ema()->state()) EXPECT_EQ(tensor.dtype(), DType::f32) << name;
  }
}

TEST(Amp, TheReportedNormIsThatOfTheLoss) {
  const Batch batch = random_batch(12);
  Config config = amp_config("off");
  config.train.clip_norm = 1e-3;  // in effect
  Learner plain(config, gpu);
  const StepOutcome wanted = plain.step(batch, 0, 1e-3);
  const TensorMap weights = on_cpu(plain.model().state());
  for (const char* amp : {"bf16", "fp16"}) {
    config.train.amp = amp;
    Learner learner(config, gpu);
    EXPECT_EQ(learner.scaler() != nullptr, config.train.amp == "fp16");
    const StepOutcome outcome = learner.step(batch, 0, 1e-3);
    EXPECT_NEAR(outcome.loss, wanted.loss, 0.01 * wanted.loss);
    EXPECT_NEAR(outcome.grad_norm, wanted.grad_norm, 0.02 * wanted.grad_norm);
    for (const auto& [name, tensor] : on_cpu(learner.model().state()))
      EXPECT_LT(test::relative_difference(tensor, weights.at(name)), 0.1) << name;
  }
}

TEST(Amp, TheScaleLeavesTheUpdateAlone) {
  // Powers of two change no digit that f16 still holds.
  const auto weights_after = [](double scale) {
    Learner learner(amp_config("fp16"), gpu);
    learner.scaler()->load_state({scale, 0});
    EXPECT_TRUE(learner.step(random_batch(12), 0, 1e-3).stepped);
    return on_cpu(learner.model().state());
  };
  EXPECT_TRUE(test::same_bits(weights_after(16384), weights_after(8192)));
}

TEST(Amp, PlanesAreBuiltOncePerUpdate) {
  for (const char* amp : {"bf16", "fp16"}) {
    Learner learner(amp_config(amp, 3), gpu);
    for (int update = 1; update <= 3; ++update) {
      ASSERT_TRUE(learner.step(random_batch(12, static_cast<std::uint64_t>(update)), 0, 1e-2).stepped);
      int layers = 0;
      for (const auto& [name, module] : learner.model().modules()) {
        const auto* layer = dynamic_cast<const EqProduct*>(module);
        if (layer == nullptr) continue;
        EXPECT_EQ(layer->rebuilds(), update) << name;
        ++layers;
      }
      EXPECT_EQ(layers, 9);
    }
  }
}

TEST(Amp, MicroBatchesAddUpToTheBatch) {
  const Batch batch = random_batch(12);
  for (const char* amp : {"bf16", "fp16"}) {
    const auto gradients = [&](std::int64_t accumulation) {
      Learner learner(amp_config(amp, accumulation), gpu);
      learner.gradients(batch, 1);
      TensorMap all;
      for (const auto& [name, parameter] : learner.model().parameters())
        all[name] = parameter->variable.grad().to(Device::cpu());
      return all;
    };
    // Of the same forward numbers; the gradients of smaller shares round anew.
    const TensorMap whole = gradients(1), parts = gradients(3);
    const double limit = std::string(amp) == "fp16" ? 4e-3 : 3e-2;
    for (const auto& [name, tensor] : whole)
      EXPECT_LT(test::relative_difference(parts.at(name), tensor), limit) << name << ", " << amp;
  }
}

TEST(Amp, AnOverflowSkipsTheUpdateAndHalvesTheScale) {
  Learner learner(amp_config("fp16"), gpu), twin(amp_config("fp16"), gpu);
  const Batch first = random_batch(12, 1), second = random_batch(12, 2);
  ASSERT_TRUE(learner.step(first, 0, 1e-2).stepped);
  ASSERT_TRUE(twin.step(first, 0, 1e-2).stepped);
  const Record before = record_of(learner);

  learner.scaler()->load_state({0x1p60, 7});
  StepOutcome outcome = learner.step(second, 0, 1e-2);
  EXPECT_FALSE(outcome.stepped);
  EXPECT_TRUE(outcome.overflowed);
  EXPECT_TRUE(std::isfinite(outcome.loss));
  EXPECT_FALSE(std::isfinite(outcome.grad_norm));
  EXPECT_EQ(learner.scaler()->state().scale, 0x1p59);
  EXPECT_EQ(learner.scaler()->state().good_updates, 0);
  expect_same(record_of(learner), before);

  // It falls until gradients fit, and the update is that of a learner which never overflowed.
  int skipped = 1;
  while (!(outcome = learner.step(second, 0, 1e-2)).stepped) ASSERT_LT(++skipped, 60);
  EXPECT_GT(skipped, 20);
  EXPECT_EQ(learner.scaler()->state().good_updates, 1);
  twin.scaler()->load_state({learner.scaler()->scale(), 0});
  ASSERT_TRUE(twin.step(second, 0, 1e-2).stepped);
  expect_same(record_of(learner), record_of(twin));
  EXPECT_EQ(learner.optimizer().updates(), 2);
}

TEST(Amp, AtTheLeastScaleTheScaleIsNotToBlame) {
  Learner learner(amp_config("fp16"), gpu);
  learner.scaler()->load_state({1, 0});
  Batch broken = random_batch(12);
  broken.images.select(0, 3).fill_(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(learner.step(broken, 0, 1e-2).stepped);

  // A weight that no f16 holds: the loss is not finite whatever the scale.
  learner.scaler()->load_state({1024, 5});
  Tensor weight = learner.model().parameters().front().parameter->variable.data();
  weight.fill_(1e6);
  const StepOutcome outcome = learner.step(random_batch(12), 0, 1e-2);
  EXPECT_FALSE(outcome.stepped);
  EXPECT_FALSE(outcome.overflowed);
  EXPECT_FALSE(std::isfinite(outcome.loss));
  EXPECT_EQ(learner.scaler()->scale(), 1024);
}

TEST(Amp, TheScaleGrowsWithUpdates) {
  Learner learner(amp_config("fp16"), gpu);
  learner.scaler()->load_state({256, 1998});
  ASSERT_TRUE(learner.step(random_batch(12, 1), 0, 1e-3).stepped);
  EXPECT_EQ(learner.scaler()->scale(), 256);
  ASSERT_TRUE(learner.step(random_batch(12, 2), 0, 1e-3).stepped);
  EXPECT_EQ(learner.scaler()->scale(), 512);
}

TEST(Amp, LossesFallAsInF32) {
  for (const char* model : {"vit", "eq_vit"}) {
    const auto losses = [&](const std::string& amp) {
      Config config = amp_config(amp);
      config.model.name = model;
      config.model.drop_path = config.model.dropout = 0;
      Learner learner(config, gpu);
      std::vector<double> values;
      for (std::uint64_t i = 0; i < 14; ++i) {
        const StepOutcome outcome = learner.step(random_batch(12, i % 2), 0, 1e-2);
        EXPECT_TRUE(outcome.stepped);
        values.push_back(outcome.loss);
      }
      return values;
    };
    const std::vector<double> wanted = losses("off");
    EXPECT_LT(wanted.back(), 0.8 * wanted.front());
    for (const char* amp : {"bf16", "fp16"}) {
      const std::vector<double> got = losses(amp);
      EXPECT_NE(got.back(), wanted.back());
      EXPECT_NEAR(got.back(), wanted.back(), 0.05 * wanted.front()) << model << ", " << amp;
    }
  }
}

TEST(Amp, StepsRepeatBitForBit) {
  for (const char* amp : {"bf16", "fp16"}) {
    const auto train = [&] {
      Learner learner(amp_config(amp, 2), gpu);
      for (std::uint64_t i = 0; i < 2; ++i) learner.step(random_batch(12, i), 0, 1e-2);
      return record_of(learner);
    };
    expect_same(train(), train());
  }
}

}  // namespace
}  // namespace gyre
