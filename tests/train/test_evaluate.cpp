#include "train/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/splits.h"
#include "models/registry.h"
#include "tests/train/support.h"
#include "train/checkpoint.h"
#include "train/step.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ModelConfig small_model(const std::string& name = "eq_vit", std::int64_t classes = 10) {
  ModelConfig model = test::tiny_config("").model;
  model.name = name;
  model.image_size = 8;
  model.classes = classes;
  return resolve(model);
}

const Preprocessing plain{.channels = 1, .native_size = 8, .size = 8, .mean = {0.5}, .std = {0.25}};

/// Softmax, ranks and loss of one image at a time, in f64.
Accuracy evaluate_plainly(Model& model, const Dataset& dataset) {
  const NoGrad no_grad;
  model.eval();
  Accuracy sums;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const Sample sample = dataset.get(i);
    const std::vector<double> logits =
        model.forward(Variable(preprocess_image(sample.image, plain).unsqueeze(0))).data().to_vector();
    const double own = logits[static_cast<std::size_t>(sample.label)];
    double total = 0;
    for (const double logit : logits) total += std::exp(logit);
    sums.loss += -std::log(std::exp(own) / total);
    const auto better =
        std::count_if(logits.begin(), logits.end(), [&](double logit) { return logit > own; });
    sums.top1 += better < 1;
    sums.top5 += better < 5;
    ++sums.samples;
  }
  const double n = static_cast<double>(sums.samples);
  return {sums.samples, sums.loss / n, 100 * sums.top1 / n, 100 * sums.top5 / n};
}

TEST(Evaluate, AgreesWithOneImageAtATime) {
  const auto data = std::make_shared<test::RandomDataset>(53, 8);
  const auto model = make_model(small_model(), 5);
  // Larger weights, so that logits differ visibly.
  for (const auto& [name, parameter] : model->parameters()) {
    Tensor weights = parameter->variable.data();
    if (name == "head.weight")
      for (std::int64_t i = 0; i < weights.numel(); ++i) weights.mutable_data<float>()[i] *= 20;
  }
  const Accuracy expected = evaluate_plainly(*model, *data);
  EXPECT_GT(expected.top5, expected.top1);
  // 53 is prime: the last batch is ragged for all but 1 and what exceeds it.
  for (const std::int64_t batch_size : {1, 4, 52, 53, 1000}) {
    for (const int workers : {0, 3}) {
      const Accuracy actual = evaluate(*model, data, plain, batch_size, workers);
      EXPECT_EQ(actual.samples, 53);
      EXPECT_EQ(actual.top1, expected.top1);
      EXPECT_EQ(actual.top5, expected.top5);
      EXPECT_NEAR(actual.loss, expected.loss, 1e-5);
    }
  }
}

TEST(Evaluate, TiesAndNonNumbersCountAgainstTheModel) {
  const auto data = std::make_shared<test::RandomDataset>(20, 8);
  const auto model = make_model(small_model(), 5);
  for (const double value : {0.0, std::nan("")}) {
    for (const auto& [name, parameter] : model->parameters())
      if (name.starts_with("head.")) Tensor(parameter->variable.data()).fill_(value);
    const Accuracy result = evaluate(*model, data, plain, 7, 1);
    EXPECT_EQ(result.top1, 0);
    EXPECT_EQ(result.top5, 0);
  }
}

TEST(Evaluate, RestoresTheMode) {
  const auto data = std::make_shared<test::RandomDataset>(6, 8);
  ModelConfig config = small_model();
  config.dropout = 0.5;  // throws in training mode, since nobody says which samples these are
  const auto model = make_model(config, 5);
  for (const bool training : {true, false}) {
    model->train(training);
    evaluate(*model, data, plain, 4, 1);
    for (const auto& [name, module] : model->modules()) EXPECT_EQ(module->training(), training) << name;
    EXPECT_TRUE(grad_enabled());
  }
}

TEST(Evaluate, RestoresTheModeAfterAnError) {
  const auto data = std::make_shared<test::RandomDataset>(6, 8);
  const auto model = make_model(small_model(), 5);
  Preprocessing wrong = plain;
  wrong.size = 12;
  EXPECT_THROW(evaluate(*model, data, wrong, 4, 1), Error);
  EXPECT_TRUE(model->training());
}

/// Checkpoint of an untrained model of the tiny data, with averages that differ from the weights.
class EvaluateCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override { test::write_tiny_data(folder_, 60, 30); }

  std::filesystem::path write(const std::string& name, const std::function<void(Checkpoint&)>& change = {},
                              const std::string& group = "c4") {
    Checkpoint checkpoint;
    checkpoint.config = test::tiny_config(folder_.path());
    checkpoint.config.model.name = name;
    checkpoint.config.model.group = group;
    checkpoint.config.data.holdout = 10;
    const DataSplits splits = open_data(checkpoint.config.data, checkpoint.config.train.seed);
    checkpoint.config.model = fit_model(checkpoint.config.model, *splits.train, splits.preprocessing);
    checkpoint.preprocessing = splits.preprocessing;
    checkpoint.class_names = splits.train->class_names();
    checkpoint.weights = test::copy_of(make_model(checkpoint.config.model, 1)->state());
    checkpoint.ema = test::copy_of(make_model(checkpoint.config.model, 2)->state());
    if (change) change(checkpoint);
    const std::filesystem::path path = folder_.path() / fmt::format("checkpoint-{}", count_++);
    write_checkpoint(path, checkpoint);
    return path;
  }
  EvalOptions options(const std::filesystem::path& checkpoint) const {
    EvalOptions options;
    options.checkpoint = checkpoint;
    options.batch_size = 7;
    options.progress = false;
    return options;
  }

  test::TempFolder folder_;
  int count_ = 0;
};

TEST_F(EvaluateCheckpoint, RotationsChangeNothingForAnEquivariantModel) {
  EvalOptions asked = options(write("eq_vit"));
  asked.rotations = true;
  const EvalResult result = evaluate_checkpoint(asked);
  ASSERT_EQ(result.rotations.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    const RotationResult& turn = result.rotations[static_cast<std::size_t>(i)];
    EXPECT_EQ(turn.degrees, 90 * i);
    EXPECT_EQ(turn.accuracy.samples, 30);
    EXPECT_EQ(turn.accuracy.top1, result.accuracy.top1);
    EXPECT_NEAR(turn.accuracy.loss, result.accuracy.loss, 1e-5);
    EXPECT_LT(turn.max_logit_change, 1e-5);
  }
  EXPECT_EQ(result.rotations[0].max_logit_change, 0);
  EXPECT_EQ(result.model, "eq_vit");
  EXPECT_EQ(result.weights, "ema");
  EXPECT_EQ(result.split, "test");
  EXPECT_FALSE(result.kernels.empty());
}

TEST_F(EvaluateCheckpoint, MirrorsTellQuarterTurnsFromTheWholeSquare) {
  for (const char* group : {"c4", "d4"}) {
    EvalOptions asked = options(write("eq_vit", {}, group));
    asked.rotations = asked.mirrors = true;
    const EvalResult result = evaluate_checkpoint(asked);
    ASSERT_EQ(result.rotations.size(), 8u);
    for (int i = 0; i < 8; ++i) {
      const RotationResult& turn = result.rotations[static_cast<std::size_t>(i)];
      EXPECT_EQ(turn.degrees, 90 * (i % 4));
      EXPECT_EQ(turn.mirrored, i >= 4);
      if (i < 4 || group == std::string("d4"))
        EXPECT_LT(turn.max_logit_change, 1e-5) << group << " " << i;
      else
        EXPECT_GT(turn.max_logit_change, 1e-3) << group << " " << i;
    }
  }
}

TEST_F(EvaluateCheckpoint, RotationsChangeTheLogitsOfAPlainModel) {
  EvalOptions asked = options(write("vit"));
  asked.rotations = true;
  const EvalResult result = evaluate_checkpoint(asked);
  ASSERT_EQ(result.rotations.size(), 4u);
  EXPECT_EQ(result.rotations[0].max_logit_change, 0);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_GT(result.rotations[i].max_logit_change, 1e-2);
    EXPECT_NE(result.rotations[i].accuracy.loss, result.accuracy.loss);
  }
  EXPECT_TRUE(result.kernels.empty());
  asked.rotations = false;
  EXPECT_TRUE(evaluate_checkpoint(asked).rotations.empty());
}

TEST_F(EvaluateCheckpoint, NaiveAndFlashAgree) {
  EvalOptions asked = options(write("eq_vit"));
  asked.backend = kernels::EqBackend::naive;
  const EvalResult naive = evaluate_checkpoint(asked);
  asked.backend = kernels::EqBackend::flash;
  const EvalResult flash = evaluate_checkpoint(asked);
  EXPECT_EQ(naive.backend, "naive");
  EXPECT_EQ(flash.backend, "flash");
  EXPECT_THAT(naive.kernels, testing::Each(HasSubstr("naive")));
  EXPECT_THAT(flash.kernels, testing::Each(HasSubstr("flash")));
  EXPECT_EQ(naive.accuracy.top1, flash.accuracy.top1);
  EXPECT_NEAR(naive.accuracy.loss, flash.accuracy.loss, 1e-5);
}

TEST_F(EvaluateCheckpoint, TakesTheWeightsAskedFor) {
  const std::filesystem::path path = write("eq_vit");
  const Checkpoint checkpoint = read_checkpoint(path);
  const DataSplits splits = open_data(checkpoint.config.data, checkpoint.config.train.seed);
  EvalOptions asked = options(path);
  for (const std::string weights : {"raw", "ema"}) {
    asked.weights = weights;
    const EvalResult result = evaluate_checkpoint(asked);
    EXPECT_EQ(result.weights, weights);
    const auto model = make_model(checkpoint.config.model, weights == "raw" ? 1 : 2);
    EXPECT_EQ(result.accuracy.loss, evaluate(*model, splits.test, splits.preprocessing, 7, 1).loss);
  }
  asked = options(write("eq_vit", [](Checkpoint& c) { c.ema.clear(); }));
  EXPECT_EQ(evaluate_checkpoint(asked).weights, "raw");
}

TEST_F(EvaluateCheckpoint, TakesTheSplitAskedFor) {
  EvalOptions asked = options(write("eq_vit"));
  for (const auto& [split, samples] : {std::pair("train", 50), {"holdout", 10}, {"test", 30}}) {
    asked.split = split;
    const EvalResult result = evaluate_checkpoint(asked);
    EXPECT_EQ(result.split, split);
    EXPECT_EQ(result.accuracy.samples, samples);
  }
  asked.split = "val";
  EXPECT_THAT(test::error_of<ValueError>([&] { evaluate_checkpoint(asked); }),
              AllOf(HasSubstr("val"), HasSubstr("holdout")));
  asked = options(write("eq_vit", [](Checkpoint& c) { c.config.data.holdout = 0; }));
  asked.split = "holdout";
  EXPECT_THAT(test::error_of<ValueError>([&] { evaluate_checkpoint(asked); }), HasSubstr("data.holdout 0"));
}

TEST_F(EvaluateCheckpoint, TakesOtherDataInTheCheckpointsForm) {
  const test::TempFolder other;
  test::write_tiny_data(other, 40, 21);
  // The form of the checkpoint counts, not that of the configuration.
  EvalOptions asked = options(write("eq_vit", [](Checkpoint& c) {
    c.config.data.mean = {0.1};
    c.preprocessing.mean = {0.25};
  }));
  asked.data_path = other.path().string();
  const EvalResult result = evaluate_checkpoint(asked);
  EXPECT_EQ(result.accuracy.samples, 21);
  EXPECT_THAT(result.preprocessing, AllOf(HasSubstr("8 px"), HasSubstr("0.25")));
}

TEST_F(EvaluateCheckpoint, RefusesOtherClasses) {
  const std::filesystem::path path = write("eq_vit", [](Checkpoint& c) { c.class_names[2] = "boat"; });
  EXPECT_THAT(test::error_of<ValueError>([&] { evaluate_checkpoint(options(path)); }),
              AllOf(HasSubstr("2"), HasSubstr("boat")));
}

}  // namespace
}  // namespace gyre
