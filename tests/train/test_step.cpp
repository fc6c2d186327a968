#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "autograd/ops/loss.h"
#include "core/memory.h"
#include "layers/stochastic.h"
#include "models/registry.h"
#include "tests/train/support.h"
#include "train/step.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;

/// Everything random in the model is on.
Config step_config(std::int64_t accumulation = 1) {
  Config config = test::tiny_config("");
  config.model.image_size = 8;
  config.model.classes = 4;
  config.model.drop_path = 0.5;
  config.model.dropout = 0.2;
  config.train.accumulation = accumulation;
  return config;
}

Batch random_batch(std::int64_t size, std::uint64_t index = 1) {
  RandomStream stream(3, Purpose::test, index);
  Batch batch;
  batch.images = random_normal({size, 1, 8, 8}, 1, stream);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < size; ++i) {
    labels.push_back(static_cast<std::int64_t>(stream.below(4)));
    batch.ids.push_back(static_cast<std::int64_t>(1000 * index) + 7 * i);
  }
  batch.labels = Tensor::from(labels, {size});
  return batch;
}

TensorMap gradients_of(Module& module) {
  TensorMap gradients;
  for (const auto& [name, parameter] : module.parameters())
    gradients[name] = parameter->variable.grad().clone();
  return gradients;
}

double worst_difference(const TensorMap& actual, const TensorMap& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double worst = 0;
  for (const auto& [name, tensor] : expected)
    worst = std::max(worst, test::relative_difference(actual.at(name), tensor));
  return worst;
}

struct Record {
  TensorMap weights, optimizer, ema;
  std::int64_t updates, ema_updates;
};

Record record_of(Learner& learner) {
  return {test::copy_of(learner.model().state()), test::copy_of(learner.optimizer().state()),
          test::copy_of(learner.ema()->state()), learner.optimizer().updates(), learner.ema()->updates()};
}

void expect_same(const Record& a, const Record& b) {
  EXPECT_TRUE(test::same_bits(a.weights, b.weights));
  EXPECT_TRUE(test::same_bits(a.optimizer, b.optimizer));
  EXPECT_TRUE(test::same_bits(a.ema, b.ema));
  EXPECT_EQ(a.updates, b.updates);
  EXPECT_EQ(a.ema_updates, b.ema_updates);
}

TEST(Step, GradientsAreThoseOfTheSmoothedLoss) {
  const Config config = step_config();
  const Batch batch = random_batch(20);
  Learner learner(config);
  const double loss = learner.gradients(batch, 2);
  const TensorMap gradients = gradients_of(learner.model());

  const std::unique_ptr<Model> twin = make_model(config.model, config.train.seed);
  const StochasticScope scope(config.train.seed, 2, batch.ids);
  const Variable expected =
      cross_entropy(twin->forward(Variable(batch.images)), batch.labels, config.train.label_smoothing);
  expected.backward();
  EXPECT_EQ(loss, expected.data().item());
  EXPECT_TRUE(test::same_bits(gradients, gradients_of(*twin)));
}

TEST(Step, MicroBatchesAddUpToTheBatch) {
  const Batch batch = random_batch(20);
  Learner whole(step_config());
  const double loss = whole.gradients(batch, 1);
  const TensorMap gradients = gradients_of(whole.model());
  // 3 does not divide 20, 64 exceeds it.
  for (const std::int64_t accumulation : {2, 3, 4, 20, 64}) {
    SCOPED_TRACE(accumulation);
    Learner split(step_config(accumulation));
    EXPECT_NEAR(split.gradients(batch, 1), loss, 1e-6 * loss);
    EXPECT_LT(worst_difference(gradients_of(split.model()), gradients), 2e-5);
  }
}

TEST(Step, DropsDependOnSampleAndEpochNotOnTheSplit) {
  // If the split moved the draws, halves would differ from the whole by far more than rounding: epochs do.
  const Batch batch = random_batch(20);
  Learner learner(step_config()), split(step_config(4));
  const double first = learner.gradients(batch, 0), second = learner.gradients(batch, 1);
  EXPECT_GT(std::abs(first - second), 1e-4);
  EXPECT_NEAR(split.gradients(batch, 0), first, 1e-6 * first);
  EXPECT_NEAR(split.gradients(batch, 1), second, 1e-6 * second);
  Batch others = batch;
  for (std::int64_t& id : others.ids) id += 1;
  EXPECT_GT(std::abs(learner.gradients(others, 0) - first), 1e-4);
}

TEST(Step, ReusesItsBuffers) {
  for (const char* name : {"vit", "eq_vit"}) {
    SCOPED_TRACE(name);
    Config config = step_config();
    config.model.name = name;
    release_cached_memory();
    Learner learner(config);
    const Batch batch = random_batch(20);
    for (int i = 0; i < 2; ++i) learner.step(batch, 0, 1e-3);
    const std::size_t warm = memory_stats().allocations;
    for (int i = 0; i < 3; ++i) learner.step(batch, 0, 1e-3);
    EXPECT_EQ(memory_stats().allocations, warm);
  }
}

TEST(Step, UpdatesAgreeForAnySplit) {
  const auto train = [](std::int64_t accumulation) {
    Config config = step_config(accumulation);
    config.optimizer.name = "sgd";  // AdamW blows rounding of tiny gradients up to whole steps
    Learner learner(config);
    for (std::uint64_t i = 0; i < 3; ++i) {
      const StepOutcome outcome = learner.step(random_batch(20, i), 0, 1e-2);
      EXPECT_TRUE(outcome.stepped);
      EXPECT_GT(outcome.grad_norm, 0);
    }
    return record_of(learner);
  };
  const Record whole = train(1);
  const Record start = [] {
    Learner learner(step_config());
    return record_of(learner);
  }();
  EXPECT_GT(worst_difference(whole.weights, start.weights), 1e-3);
  for (const std::int64_t accumulation : {3, 4}) {
    const Record split = train(accumulation);
    EXPECT_LT(worst_difference(split.weights, whole.weights), 1e-5);
    EXPECT_LT(worst_difference(split.ema, whole.ema), 1e-5);
    EXPECT_EQ(split.updates, 3);
    EXPECT_EQ(split.ema_updates, 3);
  }
}

TEST(Step, ANonFiniteLossChangesNothing) {
  for (const std::int64_t accumulation : {1, 4}) {
    Learner learner(step_config(accumulation)), twin(step_config(accumulation));
    const Batch first = random_batch(20, 1), second = random_batch(20, 2);
    ASSERT_TRUE(learner.step(first, 0, 1e-2).stepped);
    const Record before = record_of(learner);

    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      Batch broken = random_batch(20, 3);
      broken.images.select(0, 17).fill_(bad);
      const StepOutcome outcome = learner.step(broken, 0, 1e-2);
      EXPECT_FALSE(outcome.stepped);
      EXPECT_FALSE(std::isfinite(outcome.loss));
      expect_same(record_of(learner), before);
    }

    // Nor does it leave gradients behind.
    ASSERT_TRUE(learner.step(second, 0, 1e-2).stepped);
    twin.step(first, 0, 1e-2);
    twin.step(second, 0, 1e-2);
    expect_same(record_of(learner), record_of(twin));
    EXPECT_FALSE(test::same_bits(record_of(learner).weights, before.weights));
  }
}

TEST(Step, WithoutEmaThereIsNone) {
  Config config = step_config();
  config.train.ema_decay = 0;
  Learner learner(config);
  EXPECT_EQ(learner.ema(), nullptr);
  EXPECT_TRUE(learner.step(random_batch(20), 0, 1e-2).stepped);
}

TEST(Step, TheRateScalesTheUpdate) {
  const auto weights_after = [](double rate) {
    Learner learner(step_config());
    learner.step(random_batch(20), 0, rate);
    return test::copy_of(learner.model().state());
  };
  const TensorMap still = weights_after(0), small = weights_after(1e-3), large = weights_after(1e-2);
  Learner fresh(step_config());
  EXPECT_TRUE(test::same_bits(still, fresh.model().state()));
  const std::string name = "head.weight";
  const double ratio = test::relative_difference(large.at(name), still.at(name)) /
                       test::relative_difference(small.at(name), still.at(name));
  EXPECT_NEAR(ratio, 10, 0.1);
}

TEST(FitModel, TakesSizesFromTheData) {
  const test::RandomDataset data(5, 8);
  const Preprocessing form{.channels = 3, .native_size = 8, .size = 12, .mean = {0, 0, 0}, .std = {1, 1, 1}};
  ModelConfig model = test::tiny_config("").model;
  const ModelConfig fitted = fit_model(model, data, form);
  EXPECT_EQ(fitted.classes, 10);
  EXPECT_EQ(fitted.in_channels, 3);
  EXPECT_EQ(fitted.image_size, 12);
  EXPECT_EQ(fitted.width, model.width);

  // A named size does not win over the data.
  ModelConfig named;
  named.name = "eq_vit_t";
  named.given = {"name"};
  const Preprocessing large{
      .channels = 3, .native_size = 32, .size = 32, .mean = {0, 0, 0}, .std = {1, 1, 1}};
  const ModelConfig small = fit_model(named, data, large);
  EXPECT_EQ(small.image_size, 32);
  EXPECT_EQ(small.classes, 10);
  EXPECT_EQ(small.width, 384);
}

TEST(FitModel, RefusesWhatTheFileSaysOtherwise) {
  const test::RandomDataset data(5, 8);
  const Preprocessing form{.channels = 1, .native_size = 8, .size = 8, .mean = {0}, .std = {1}};
  const ModelConfig model = test::tiny_config("").model;
  const auto refusal = [&](std::int64_t ModelConfig::*field, const char* name, std::int64_t value) {
    ModelConfig given = model;
    given.*field = value;
    given.given.insert(name);
    return test::error_of<ConfigError>([&] { fit_model(given, data, form); });
  };
  EXPECT_THAT(refusal(&ModelConfig::classes, "classes", 7),
              testing::AllOf(HasSubstr("model.classes: 7"), HasSubstr("random"), HasSubstr("10")));
  EXPECT_THAT(refusal(&ModelConfig::in_channels, "in_channels", 3),
              testing::AllOf(HasSubstr("model.in_channels: 3"), HasSubstr("1")));
  EXPECT_THAT(refusal(&ModelConfig::image_size, "image_size", 32),
              testing::AllOf(HasSubstr("model.image_size: 32"), HasSubstr("8")));
  ModelConfig odd = model;
  odd.patch_size = 3;
  EXPECT_THAT(test::error_of<Error>([&] { fit_model(odd, data, form); }), HasSubstr("patch_size"));
}

}  // namespace
}  // namespace gyre
