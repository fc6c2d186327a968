#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/train/checkpoint_support.h"
#include "tests/train/support.h"
#include "train/loss_scaler.h"
#include "train/step.h"
#include "train/trainer_state.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;

TEST(LossScaler, GrowsAfterUpdatesWithoutOverflow) {
  LossScaler scaler;
  EXPECT_EQ(scaler.scale(), 65536);
  for (int i = 0; i < 1999; ++i) scaler.update_done();
  EXPECT_EQ(scaler.scale(), 65536);
  scaler.update_done();
  EXPECT_EQ(scaler.scale(), 131072);
  EXPECT_EQ(scaler.state().good_updates, 0);
  for (int i = 0; i < 2000; ++i) scaler.update_done();
  EXPECT_EQ(scaler.scale(), 262144);
}

TEST(LossScaler, HalvesAtAnOverflowAndCountsAnew) {
  LossScaler scaler;
  for (int i = 0; i < 1999; ++i) scaler.update_done();
  EXPECT_TRUE(scaler.overflowed());
  EXPECT_EQ(scaler.scale(), 32768);
  scaler.update_done();
  EXPECT_EQ(scaler.scale(), 32768);
  EXPECT_EQ(scaler.state().good_updates, 1);
}

TEST(LossScaler, StopsAtOne) {
  LossScaler scaler;
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(scaler.overflowed()) << i;
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_FALSE(scaler.overflowed());
  EXPECT_EQ(scaler.scale(), 1);
}

TEST(LossScaler, RefusesStatesThatItCannotBeIn) {
  LossScaler scaler;
  scaler.load_state({8, 3});
  for (const double scale :
       {0.0, 0.5, -2.0, 1e308, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(test::error_of<ValueError>([&] {
                  scaler.load_state({scale, 0});
                }),
                HasSubstr("is out of range [1, "));
  EXPECT_THAT(test::error_of<ValueError>([&] { scaler.load_state({2, -1}); }), HasSubstr("-1 updates"));
  EXPECT_EQ(scaler.state().scale, 8);
  EXPECT_EQ(scaler.state().good_updates, 3);
}

TEST(LossScaler, StandsInTheCheckpoint) {
  Checkpoint saved = test::small_checkpoint(1);
  saved.state.loss_scale = 0x1p37;
  saved.state.scale_updates = 1999;
  const std::string text = encode_trainer_json(saved, {{"model.safetensors", {}}});
  Checkpoint read;
  decode_trainer_json(text, "trainer.json", read);
  EXPECT_EQ(read.state.loss_scale, 0x1p37);
  EXPECT_EQ(read.state.scale_updates, 1999);
  EXPECT_EQ(read.state.updates, 1);

  // Checkpoints from before there was one.
  auto json = nlohmann::ordered_json::parse(text);
  for (const char* key : {"loss_scale", "scale_updates"}) json["state"].erase(key);
  json.erase("crc32");
  json["crc32"] = crc32_of(json.dump());
  Checkpoint older;
  decode_trainer_json(json.dump(1), "trainer.json", older);
  EXPECT_EQ(older.state.loss_scale, 0);
  EXPECT_EQ(older.state.updates, 1);
}

TEST(Amp, NamesATypeOnCudaDevicesOnly) {
  TrainConfig config;
  EXPECT_EQ(amp_type(config, Device::cpu()), std::nullopt);
  EXPECT_EQ(amp_type(config, Device::cuda()), std::nullopt);
  config.amp = "bf16";
  EXPECT_EQ(amp_type(config, Device::cuda()), DType::bf16);
  config.amp = "fp16";
  EXPECT_EQ(amp_type(config, Device::cuda(1)), DType::f16);
  EXPECT_EQ(
      test::error_of<ConfigError>([&] { amp_type(config, Device::cpu()); }),
      "train.amp: fp16 computes on CUDA devices only, not on cpu; choose one with --device cuda, or set "
      "train.amp: off");
}

TEST(Amp, IsAWordInYaml) {
  // Without quotes YAML 1.1 reads off as false.
  for (const char* text : {"train: {amp: off}\n", "train: {amp: \"off\"}\n"})
    EXPECT_EQ(parse_config(text, "x.yaml").train.amp, "off");
  Config config;
  apply_override(config, "train.amp=fp16");
  EXPECT_EQ(parse_config(config_to_yaml(config), "x.yaml").train.amp, "fp16");
  EXPECT_THAT(test::error_of<ConfigError>([&] { apply_override(config, "train.amp=f16"); }),
              HasSubstr("'f16' is not one of off, bf16, fp16"));
}

TEST(Amp, OnTheCpuALearnerIsRefused) {
  Config config = test::tiny_config("");
  config.train.amp = "bf16";
  EXPECT_THAT(test::error_of<ConfigError>([&] { const Learner learner(config); }),
              HasSubstr("train.amp: bf16 computes on CUDA devices only, not on cpu"));
}

}  // namespace
}  // namespace gyre
