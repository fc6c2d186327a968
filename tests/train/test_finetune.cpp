#include "train/finetune.h"

#include <cmath>

#include "data/splits.h"
#include "tests/train/run_support.h"
#include "train/step.h"

namespace gyre {
namespace {

using test::error_of;
using test::same_bits;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(MatchesName, GlobsAndBeginningsOfNames) {
  EXPECT_TRUE(matches_name("patch_embed", "patch_embed.proj.weight"));
  EXPECT_TRUE(matches_name("patch_embed.*", "patch_embed.proj.weight"));
  EXPECT_TRUE(matches_name("blocks.?.attn", "blocks.3.attn.qkv.bias"));
  EXPECT_TRUE(matches_name("*.bias", "blocks.3.attn.qkv.bias"));
  EXPECT_TRUE(matches_name("head.weight", "head.weight"));
  EXPECT_TRUE(matches_name("*", "pos_embed"));
  EXPECT_FALSE(matches_name("blocks.1", "blocks.10.norm1.weight"));
  EXPECT_FALSE(matches_name("patch", "patch_embed.proj.weight"));
  EXPECT_FALSE(matches_name("blocks.?.attn", "blocks.12.attn.qkv.bias"));
  EXPECT_FALSE(matches_name("", "pos_embed"));
}

TEST(AdoptModel, TakesLayersFromTheParentAndTheRestFromTheFile) {
  const ModelConfig parent = parse_config(config_to_yaml(test::tiny_config("x")), "p").model;
  ModelConfig given;
  EXPECT_EQ(adopt_model(given, parent, "p").width, 16);
  EXPECT_EQ(adopt_model(given, parent, "p").drop_path, 0.1);
  given.drop_path = 0.3;
  given.backend = "naive";
  given.heads = 2;
  given.given = {"drop_path", "backend", "heads"};
  const ModelConfig adopted = adopt_model(given, parent, "p");
  EXPECT_EQ(adopted.drop_path, 0.3);
  EXPECT_EQ(adopted.backend, "naive");
  EXPECT_EQ(adopted.patch_size, 4);
  // The data decides these two, whatever the parent had.
  EXPECT_FALSE(adopted.given.contains("classes"));
  EXPECT_FALSE(adopted.given.contains("image_size"));
}

TEST(AdoptModel, RefusesOtherLayers) {
  const ModelConfig parent = parse_config(config_to_yaml(test::tiny_config("x")), "p").model;
  ModelConfig given;
  given.group = "d4";
  given.given = {"group"};
  EXPECT_EQ(error_of<ConfigError>([&] { adopt_model(given, parent, "runs/a"); }),
            "model.group: d4, but runs/a has c4; leave it out");
}

TEST(ScaleRates, FallFromTheHeadToThePatches) {
  Config config = test::tiny_config("x");
  const Learner learner(config);  // decay 1
  config.finetune.layer_decay = 0.5;
  Learner decayed(config);
  std::map<std::string, double> rates;
  for (const auto& [name, parameter] : decayed.model().parameters()) rates[name] = parameter->rate;
  EXPECT_EQ(rates.at("patch_embed.proj.weight"), 0.125);
  EXPECT_EQ(rates.at("pos_embed"), 0.125);
  EXPECT_EQ(rates.at("blocks.0.norm1.weight"), 0.25);
  EXPECT_EQ(rates.at("blocks.1.mlp.fc2.bias"), 0.5);
  EXPECT_EQ(rates.at("norm.weight"), 1);
  EXPECT_EQ(rates.at("head.bias"), 1);
  EXPECT_THAT(decayed.optimizer().describe(), HasSubstr("; layer decay down to 0.125 of the learning rate"));
}

class Finetune : public test::TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    Config pretrained = config();
    pretrained.train.updates = 24;
    train(pretrained, "parent");
  }

  /// Half of the classes on top of the parent.
  Config finetuned() const {
    Config next = config();
    next.model = {};
    next.data.select = {"2", "0"};
    next.data.holdout = 30;
    next.train.updates = 8;
    next.finetune.checkpoint = run_path("parent").string();
    return next;
  }
  Batch batch(const Config& config) const {
    const DataSplits splits = open_data(config.data, config.train.seed);
    Loader loader(splits.train, Pipeline(splits.preprocessing), training_sampler(config, *splits.train), 0,
                  0);
    loader.start_epoch(0);
    return *loader.next();
  }
};

TEST_F(Finetune, OtherClassesReplaceTheHeadAndKeepTheRest) {
  const TrainResult result = train(finetuned(), "child");
  EXPECT_EQ(result.updates, 8);
  EXPECT_EQ(result.transfer.initialised.size(), 2u);
  EXPECT_THAT(result.transfer.resampled, IsEmpty());
  const Checkpoint child = last("child");
  EXPECT_THAT(child.class_names, ElementsAre("2", "0"));
  EXPECT_EQ(child.config.model.classes, 2);
  EXPECT_EQ(child.config.model.width, 16);
  EXPECT_EQ(child.weights.at("head.weight").shape(), Shape({2, 4}));
  // The checkpoint knows where it comes from.
  const std::string parent = std::filesystem::canonical(run_path("parent") / "checkpoints" / "best").string();
  EXPECT_EQ(child.config.finetune.checkpoint, parent);
  const auto metadata =
      read_safetensors(run_path("child") / "checkpoints" / "last" / "model.safetensors").metadata;
  EXPECT_EQ(metadata.at("parent"), parent);
  EXPECT_EQ(metadata.at("grid"), "2x2");
  EXPECT_EQ(metadata.at("class_token"), "false");
  const std::string log = read_file(run_path("child") / "log.txt");
  EXPECT_THAT(log, HasSubstr(" kept patch_embed.proj.weight [4, 1, 4, 4]"));
  EXPECT_THAT(log, HasSubstr(" new head.weight [4, 4] to [2, 4]"));
}

TEST_F(Finetune, BeginsWithTheWeightsAskedFor) {
  Config next = finetuned();
  next.optimizer.learning_rate = 1e-30;
  next.train.updates = 1;
  next.finetune.head = "keep";
  next.data.select = {};
  next.data.holdout = 60;
  const Checkpoint parent = read_checkpoint(find_checkpoint(run_path("parent")));
  for (const auto& [weights, expected] : {std::pair("ema", parent.ema), std::pair("raw", parent.weights)}) {
    next.finetune.weights = weights;
    const TrainResult result = train(next, std::string("from_") + weights);
    EXPECT_THAT(result.transfer.initialised, IsEmpty());
    const Checkpoint child = last(std::string("from_") + weights);
    EXPECT_TRUE(same_bits(child.weights, expected)) << weights;
    EXPECT_TRUE(same_bits(child.ema, expected)) << "averages begin with the same weights";
  }
}

TEST_F(Finetune, LargerImagesResampleThePositions) {
  Config next = config();
  next.model = {};
  next.data.image_size = 16;
  next.train.updates = 2;
  next.finetune.checkpoint = run_path("parent").string();
  const TrainResult result = train(next, "larger");
  ASSERT_EQ(result.transfer.resampled.size(), 1u);
  EXPECT_EQ(result.transfer.resampled[0].name, "pos_embed");
  EXPECT_EQ(result.transfer.resampled[0].to, Shape({4, 4, 4}));
  EXPECT_THAT(result.transfer.initialised, IsEmpty());
  EXPECT_EQ(last("larger").config.model.image_size, 16);
}

TEST_F(Finetune, FrozenParametersHaveNoGradientNoStateAndStay) {
  Config next = finetuned();
  next.finetune.freeze = {"patch_embed", "pos_embed", "blocks.0.*"};
  train(next, "frozen");
  const Checkpoint parent = read_checkpoint(find_checkpoint(run_path("parent")));
  const Checkpoint child = last("frozen");
  int frozen = 0;
  for (const auto& [name, tensor] : child.weights) {
    const bool stays =
        name.starts_with("patch_embed") || name == "pos_embed" || name.starts_with("blocks.0.");
    frozen += stays;
    EXPECT_EQ(child.optimizer.contains("exp_avg." + name), !stays) << name;
    if (!stays) continue;
    EXPECT_TRUE(same_bits({{name, tensor}}, {{name, parent.ema.at(name)}})) << name;
    EXPECT_TRUE(same_bits({{name, child.ema.at(name)}}, {{name, tensor}})) << name;
  }
  EXPECT_EQ(frozen, 15);

  next.model = child.config.model;
  Learner learner(next);
  learner.gradients(batch(next), 0);
  for (const auto& [name, parameter] : learner.model().parameters()) {
    EXPECT_EQ(parameter->variable.grad().defined(), parameter->variable.requires_grad()) << name;
  }
  EXPECT_THAT(learner.optimizer().describe(), HasSubstr("; frozen: 15 tensors, "));
}

TEST_F(Finetune, FrozenStemNeedsNoBackward) {
  Config next = finetuned();
  next.model = last("parent").config.model;
  next.model.classes = 2;
  next.finetune.freeze = {"patch_embed", "pos_embed", "blocks"};
  Learner learner(next);
  bool checked = false;
  const ForwardObserver observer([&](Module& module, const Variable&, const Variable& y) {
    if (module.kind() != "EqBlock") return;
    EXPECT_FALSE(y.requires_grad());
    checked = true;
  });
  learner.gradients(batch(next), 0);
  EXPECT_TRUE(checked);
}

TEST_F(Finetune, ResumesBitForBitWithoutItsParent) {
  Config next = finetuned();
  next.finetune.layer_decay = 0.7;
  next.finetune.freeze = {"patch_embed"};
  train(next, "whole");
  train(next, "broken", 3);
  std::filesystem::remove_all(run_path("parent"));
  const TrainResult result = resume(next, "broken");
  EXPECT_EQ(result.updates, 8);
  EXPECT_EQ(result.parent, last("whole").config.finetune.checkpoint);
  test::expect_same_run(run_path("whole"), run_path("broken"));
}

TEST_F(Finetune, LayerDecayReachesTheUpdate) {
  // One step of gradient descent: what moved is the rate times the gradient.
  Config next = finetuned();
  next.model = last("parent").config.model;
  next.model.classes = 2;
  next.model.drop_path = 0;
  next.optimizer.name = "sgd";
  next.optimizer.weight_decay = 0;
  next.optimizer.momentum = 0;
  next.train.clip_norm = 0;
  next.finetune.layer_decay = 0.5;
  Learner learner(next);
  const Batch one = batch(next);
  learner.gradients(one, 0);
  TensorMap before, gradient;
  for (const auto& [name, parameter] : learner.model().parameters()) {
    before[name] = parameter->variable.data().clone();
    gradient[name] = parameter->variable.grad().clone();
  }
  learner.step(one, 0, 0.25);
  for (const auto& [name, parameter] : learner.model().parameters()) {
    if (name != "patch_embed.proj.weight" && name != "head.weight") continue;
    const std::vector<double> now = parameter->variable.data().to_vector(), was = before.at(name).to_vector(),
                              g = gradient.at(name).to_vector();
    const double rate = name == "head.weight" ? 0.25 : 0.25 * 0.125;
    for (std::size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(was[i] - now[i], rate * g[i], 1e-6) << name;
  }
}

TEST_F(Finetune, BadInputIsOneLine) {
  const auto error_with = [&](const Config& config) {
    return error_of<Error>([&] { train(config, "bad"); });
  };
  Config next = finetuned();
  next.finetune.head = "keep";
  EXPECT_THAT(error_with(next), ::testing::AllOf(StartsWith("finetune.head: keep, but "),
                                                 ::testing::EndsWith(" has 4 classes and the data 2")));
  next = finetuned();
  next.finetune.freeze = {"patches"};
  EXPECT_EQ(error_with(next),
            "finetune.freeze: \"patches\" means no parameter; names are such as patch_embed.proj.weight and "
            "head.bias");
  next.finetune.freeze = {"*"};
  EXPECT_EQ(error_with(next), "finetune.freeze: [*] leaves nothing to train");
  next = finetuned();
  next.data.image_size = 18;
  EXPECT_EQ(
      error_with(next),
      "model.patch_size: 18x18 image with patch 4 leaves a remainder of 2; legal patch sizes nearby: 3, 6; "
      "image sizes: 16, 20");
  next = finetuned();
  next.finetune.checkpoint = run_path("nothing").string();
  EXPECT_THAT(error_with(next), ::testing::EndsWith("nothing: does not exist"));
  next = finetuned();
  const auto weights = run_path("parent") / "checkpoints" / "best" / "ema.safetensors";
  write_file(weights, read_file(weights).substr(0, 900));
  EXPECT_THAT(error_with(next), HasSubstr("ema.safetensors: truncated: 900 bytes, expected "));
  EXPECT_FALSE(std::filesystem::exists(run_path("bad") / "config.yaml")) << "nothing was begun";
}

TEST_F(Finetune, ColoursMustBeThoseOfTheParent) {
  Config next = finetuned();
  next.data.select = {};
  const test::TempFolder folder;
  for (const char* name : {"train/0/a.ppm", "train/1/b.ppm", "val/0/a.ppm", "val/1/b.ppm"})
    folder.write(name, "P6\n8 8\n255\n" + test::random_bytes(192, 1));
  next.data.dataset = "image_folder";
  next.data.path = folder.path().string();
  next.data.pad_to = 8;
  next.data.holdout = 0;
  EXPECT_THAT(error_of<ConfigError>([&] { train(next, "colour"); }),
              ::testing::AllOf(HasSubstr(": takes images of 1 channels, "), ::testing::EndsWith(" has 3")));
}

TEST(FinetuneConfig, LeavesTheModelSectionAsGiven) {
  const test::TempFolder folder;
  const auto file = folder.write("f.yaml", "model: {image_size: 42}\nfinetune: {checkpoint: runs/a}\n");
  const Config config = load_config(file);  // 42 is no multiple of the default patch
  EXPECT_EQ(config.model.image_size, 42);
  EXPECT_THAT(config.model.given, ElementsAre("image_size"));
  const std::vector<std::string> none{"finetune.checkpoint="};
  error_of<ConfigError>([&] { load_config(file, none); });
}

TEST(FinetuneConfig, ListsOfTextSurviveYaml) {
  Config config;
  config.data.select = {"T-shirt/top", "3", "a \"b\"\t\xc3\xa9"};
  config.finetune.freeze = {"blocks.?.attn.*"};
  config.finetune.layer_decay = 0.75;
  const Config back = parse_config(config_to_yaml(config), "yaml");
  EXPECT_EQ(back.data.select, config.data.select);
  EXPECT_EQ(back.finetune.freeze, config.finetune.freeze);
  EXPECT_EQ(back.finetune.layer_decay, 0.75);
  apply_override(config, "data.select=[Bag, 2]");
  EXPECT_THAT(config.data.select, ElementsAre("Bag", "2"));
  EXPECT_EQ(error_of<ConfigError>([&] { apply_override(config, "data.select=Bag"); }),
            "--set data.select=Bag: data.select: expects a list such as [a, b], not text");
}

}  // namespace
}  // namespace gyre
