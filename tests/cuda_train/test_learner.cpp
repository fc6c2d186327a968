#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/memory.h"
#include "tests/cuda/device.h"
#include "tests/train/support.h"
#include "train/step.h"

namespace gyre {
namespace {

const Device gpu = device_under_test();

/// Everything random in the model is on.
Config learner_config(const std::string& optimizer, std::int64_t accumulation = 1) {
  Config config = test::tiny_config("");
  config.model.backend = "flash";
  config.model.drop_path = 0.5;
  config.model.dropout = 0.2;
  config.optimizer.name = optimizer;
  config.train.accumulation = accumulation;
  config.train.label_smoothing = 0.1;
  return config;
}

Batch batch_on(Device device, std::int64_t size, std::uint64_t index) {
  RandomStream stream(3, Purpose::test, index);
  Batch batch;
  batch.images = random_normal({size, 1, test::tiny_side, test::tiny_side}, 1, stream).to(device);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < size; ++i) {
    labels.push_back(static_cast<std::int64_t>(stream.below(test::tiny_classes)));
    batch.ids.push_back(static_cast<std::int64_t>(1000 * index) + 7 * i);
  }
  batch.labels = Tensor::from(labels, {size}).to(device);
  return batch;
}

/// Weights, moments and averages by name, copied to the CPU.
TensorMap state_of(Learner& learner) {
  TensorMap all;
  const auto add = [&](const std::string& prefix, const TensorMap& tensors) {
    for (const auto& [name, tensor] : tensors) all[prefix + name] = tensor.to(Device::cpu()).clone();
  };
  add("weights.", learner.model().state());
  add("optimizer.", learner.optimizer().state());
  add("ema.", learner.ema()->state());
  return all;
}

std::vector<double> train(Learner& learner, std::uint64_t updates, std::uint64_t first = 0) {
  std::vector<double> records;
  for (std::uint64_t i = first; i < first + updates; ++i) {
    const StepOutcome outcome = learner.step(batch_on(learner.model().device(), 7, i), 2, 1e-2);
    EXPECT_TRUE(outcome.stepped);
    records.push_back(outcome.loss);
    records.push_back(outcome.grad_norm);
  }
  return records;
}

void expect_close(const TensorMap& actual, const TensorMap& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected)
    EXPECT_LT(test::relative_difference(actual.at(name), tensor), tolerance) << name;
}

void expect_all_on(Learner& learner, Device device) {
  for (const TensorMap& state :
       {learner.model().state(), learner.optimizer().state(), learner.ema()->state()}) {
    for (const auto& [name, tensor] : state) {
      EXPECT_EQ(tensor.device(), name == "updates" ? Device::cpu() : device) << name;
    }
  }
}

TEST(CudaLearner, BeginsWithTheNumbersOfTheCpu) {
  Learner here(learner_config("adamw")), there(learner_config("adamw"), gpu);
  expect_all_on(there, gpu);
  EXPECT_TRUE(test::same_bits(state_of(there), state_of(here)));
}

TEST(CudaLearner, UpdatesMatchTheCpu) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    for (const std::int64_t accumulation : {1, 3}) {
      SCOPED_TRACE(fmt::format("{}, accumulation {}", optimizer, accumulation));
      Learner here(learner_config(optimizer, accumulation)),
          there(learner_config(optimizer, accumulation), gpu);
      const TensorMap before = state_of(here);
      const std::vector<double> wanted = train(here, 3), got = train(there, 3);
      for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-4 * wanted[i]) << i;
      expect_all_on(there, gpu);
      // The update of adamw turns where a gradient is next to nothing.
      expect_close(state_of(there), state_of(here), *optimizer == 's' ? 1e-4 : 1e-2);
      EXPECT_FALSE(test::same_bits(state_of(here), before));
    }
  }
}

TEST(CudaLearner, UpdatesRepeatBitForBit) {
  Learner one(learner_config("adamw", 2), gpu), other(learner_config("adamw", 2), gpu);
  EXPECT_EQ(train(one, 3), train(other, 3));
  EXPECT_TRUE(test::same_bits(state_of(one), state_of(other)));
}

TEST(CudaLearner, StateMovesThereAndBackUnchanged) {
  Learner here(learner_config("adamw"));
  train(here, 2);
  const TensorMap wanted = state_of(here);
  const auto hand_over = [](Learner& from, Learner& to) {
    to.model().load_state(from.model().state());
    to.optimizer().load_state(from.optimizer().state());
    to.ema()->load_state(from.ema()->state(), from.ema()->updates());
  };
  Learner there(learner_config("adamw"), gpu);
  hand_over(here, there);
  EXPECT_TRUE(test::same_bits(state_of(there), wanted));
  expect_all_on(there, gpu);
  Learner back(learner_config("adamw"));
  hand_over(there, back);
  EXPECT_TRUE(test::same_bits(state_of(back), wanted));
  expect_all_on(back, Device::cpu());
  // The record continues on either side as if it had never moved.
  EXPECT_EQ(train(back, 1, 2), train(here, 1, 2));
  EXPECT_TRUE(test::same_bits(state_of(back), state_of(here)));
  train(there, 1, 2);
  expect_close(state_of(there), state_of(here), 1e-2);
}

TEST(CudaLearner, SkipsLossesThatAreNotFinite) {
  Learner learner(learner_config("adamw"), gpu);
  train(learner, 1);
  const TensorMap before = state_of(learner);
  Batch bad = batch_on(gpu, 7, 5);
  bad.images.fill_(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(learner.step(bad, 2, 1e-2).stepped);
  EXPECT_TRUE(test::same_bits(state_of(learner), before));
}

TEST(CudaLearner, UpdatesAllocateNothingOnceWarm) {
  Learner learner(learner_config("adamw"), gpu);
  train(learner, 2);
  const std::size_t before = memory_stats(gpu).allocations;
  train(learner, 2, 2);
  EXPECT_EQ(memory_stats(gpu).allocations, before);
}

TEST(CudaLearner, AveragedWeightsAreSwappedOnTheDevice) {
  Learner learner(learner_config("adamw"), gpu);
  train(learner, 2);
  const TensorMap raw = test::copy_of(learner.model().state());
  {
    const EmaScope averaged(learner.ema());
    EXPECT_EQ(learner.model().device(), gpu);
    EXPECT_FALSE(test::same_bits(state_of(learner), raw));
    const auto weights = learner.model().state();
    for (const auto& [name, tensor] : learner.ema()->state())
      EXPECT_EQ(tensor.to_vector(), weights.at(name).to_vector()) << name;
  }
  const auto weights = learner.model().state();
  for (const auto& [name, tensor] : raw) EXPECT_EQ(tensor.to_vector(), weights.at(name).to_vector()) << name;
}

}  // namespace
}  // namespace gyre
