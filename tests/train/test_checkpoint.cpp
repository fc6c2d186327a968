#include "train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/file.h"
#include "tests/data/support.h"
#include "tests/train/checkpoint_support.h"
#include "tests/train/decimal_comma.h"
#include "train/trainer_state.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::same;
using test::small_checkpoint;
using test::TempFolder;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() { write_checkpoint(path_, checkpoint_); }
  fs::path file(const std::string& name) const { return path_ / name; }
  std::string refusal(CheckpointParts parts = CheckpointParts::all) const {
    const std::string text = error_of<FileError>([&] { read_checkpoint(path_, parts); });
    EXPECT_THAT(text, Not(HasSubstr("\n")));
    if (parts == CheckpointParts::all) {
      EXPECT_EQ(error_of<FileError>([&] { verify_checkpoint(path_); }), text);
    }
    return text;
  }
  void change(const std::string& name, std::size_t at) const {
    std::string bytes = read_file(file(name));
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_file(file(name), bytes);
  }

  TempFolder folder_;
  fs::path path_ = folder_.path() / "made" / "update-00000012";
  Checkpoint checkpoint_ = small_checkpoint(12);
};

TEST_F(CheckpointTest, ReadsBackBitForBit) {
  const Checkpoint read = read_checkpoint(path_);
  EXPECT_TRUE(same(read.weights, checkpoint_.weights));
  EXPECT_TRUE(same(read.ema, checkpoint_.ema));
  EXPECT_TRUE(same(read.optimizer, checkpoint_.optimizer));
  EXPECT_FALSE(same(read.weights, read.ema));
  EXPECT_EQ(config_to_yaml(read.config), config_to_yaml(checkpoint_.config));
  EXPECT_EQ(read.preprocessing, checkpoint_.preprocessing);
  EXPECT_EQ(read.class_names, checkpoint_.class_names);
  EXPECT_EQ(read.path, path_);
  const Checkpoint weights = read_checkpoint(path_, CheckpointParts::weights);
  EXPECT_TRUE(same(weights.ema, checkpoint_.ema));
  EXPECT_TRUE(weights.optimizer.empty());
}

TEST_F(CheckpointTest, EveryNumberOfTheStateReadsBackExactly) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {0.1,  -0.0,     1.0 / 3,   5e-324,      1.7976931348623157e308,
                                      1e22, infinity, -infinity, std::nan("")};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = [&](std::size_t k) { return values[(i + k) % values.size()]; };
    const auto count = [&](std::int64_t k) {
      return (std::int64_t{1} << 62) + 100 * static_cast<std::int64_t>(i) + k;
    };
    const TrainingState s{count(0), count(1), count(2), count(3), count(4), count(5),
                          value(0), count(6), value(5), value(6), value(1), value(2),
                          count(7), value(3), count(8), value(4), -count(9)};
    checkpoint_.state = s;
    TrainingState r;
    {
      const DecimalComma locale;
      write_checkpoint(path_, checkpoint_);
      r = read_checkpoint(path_).state;
    }
    EXPECT_EQ(std::vector({r.updates, r.epoch, r.step, r.bad_steps, r.skipped, r.ema_updates, r.best_epoch,
                           r.window_samples, r.window_steps, r.epoch_samples}),
              std::vector({s.updates, s.epoch, s.step, s.bad_steps, s.skipped, s.ema_updates, s.best_epoch,
                           s.window_samples, s.window_steps, s.epoch_samples}));
    const auto bits = [](const TrainingState& state) {
      std::vector<std::uint64_t> all;
      for (const double x : {state.best_top1, state.last_loss, state.last_top1, state.seconds,
                             state.window_loss, state.window_norm, state.epoch_loss})
        all.push_back(std::isnan(x) ? 1 : std::bit_cast<std::uint64_t>(x));
      return all;
    };
    EXPECT_EQ(bits(r), bits(s)) << i;
  }
}

TEST_F(CheckpointTest, TensorsMayBeViewsAndPartsMayBeAbsent) {
  checkpoint_.weights["view"] =
      Tensor::arange(12).to(DType::f32).reshape({3, 4}).transpose(0, 1).slice(0, 1, 4, 2);
  checkpoint_.ema.clear();
  checkpoint_.optimizer.clear();
  write_checkpoint(path_, checkpoint_);
  const Checkpoint read = read_checkpoint(path_);
  EXPECT_EQ(read.weights.at("view").to_vector(), (std::vector<double>{1, 5, 9, 3, 7, 11}));
  EXPECT_TRUE(read.ema.empty() && read.optimizer.empty());
  EXPECT_FALSE(fs::exists(file("ema.safetensors")));  // of the checkpoint that stood there
}

TEST_F(CheckpointTest, WeightsFileDescribesItself) {
  const Metadata metadata = read_safetensors(file("model.safetensors")).metadata;
  EXPECT_EQ(metadata.at("format"), "gyre");
  EXPECT_EQ(metadata.at("group"), "c4");
  EXPECT_EQ(metadata.at("updates"), "12");
  EXPECT_EQ(metadata.at("weights"), "raw");
  EXPECT_THAT(metadata.at("class_names"), HasSubstr("gar\xc3\xa7on"));
  EXPECT_THAT(metadata.at("preprocessing"), HasSubstr("0.3333333333333333"));
  const Config config = parse_config(metadata.at("model"), "metadata");
  EXPECT_EQ(config.model.width, 8);
  EXPECT_THAT(metadata.at("model"), Not(HasSubstr("optimizer")));
  EXPECT_EQ(read_safetensors(file("ema.safetensors")).metadata.at("weights"), "ema");
}

TEST_F(CheckpointTest, ClassNamesOfAnyBytesCanBeSaved) {
  checkpoint_.class_names = {"caf\xe9"};  // Latin-1
  write_checkpoint(path_, checkpoint_);
  EXPECT_EQ(read_checkpoint(path_).class_names, std::vector<std::string>{"caf\xef\xbf\xbd"});
}

TEST_F(CheckpointTest, AnyChangedByteIsFound) {
  for (const char* name : {"model.safetensors", "ema.safetensors", "optimizer.safetensors"}) {
    const std::string bytes = read_file(file(name));
    for (const std::size_t at : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
      change(name, at);
      const std::uint32_t found = crc32_of(read_file(file(name)));
      EXPECT_EQ(refusal(), fmt::format("{}: damaged: CRC-32 {:08x}, expected {:08x}", file(name).string(),
                                       found, crc32_of(bytes)));
      write_file(file(name), bytes);
    }
  }
  EXPECT_NO_THROW(read_checkpoint(path_));
  change("optimizer.safetensors", 100);
  EXPECT_NO_THROW(read_checkpoint(path_, CheckpointParts::weights));
}

TEST_F(CheckpointTest, AnyChangedByteOfTheDescriptionIsFound) {
  const std::string text = read_file(file("trainer.json"));
  int tried = 0;
  for (std::size_t at = 0; at < text.size(); at += 31) {
    if (text[at] == ' ' || text[at] == '\n') continue;
    change("trainer.json", at);
    EXPECT_THAT(refusal(), StartsWith(file("trainer.json").string() + ":")) << at;
    write_file(file("trainer.json"), text);
    ++tried;
  }
  EXPECT_GT(tried, 30);
}

TEST_F(CheckpointTest, NamesWhatIsMissingTruncatedOrExtra) {
  const std::string bytes = read_file(file("ema.safetensors"));
  const std::string name = file("ema.safetensors").string();
  write_file(file("ema.safetensors"), bytes.substr(0, 100));
  EXPECT_EQ(refusal(), fmt::format("{}: truncated: 100 bytes, expected {}", name, bytes.size()));
  write_file(file("ema.safetensors"), bytes + "x");
  EXPECT_EQ(refusal(),
            fmt::format("{}: damaged: {} bytes, expected {}", name, bytes.size() + 1, bytes.size()));
  fs::remove(file("ema.safetensors"));
  EXPECT_EQ(refusal(CheckpointParts::weights),
            fmt::format("{}: missing, expected {} bytes", name, bytes.size()));
  write_file(file("ema.safetensors"), bytes);
  write_file(file("more.safetensors"), bytes);
  EXPECT_EQ(refusal(), file("more.safetensors").string() + ": not listed in trainer.json");
  fs::remove(file("more.safetensors"));
  EXPECT_NO_THROW(read_checkpoint(path_));

  const std::string json = read_file(file("trainer.json"));
  write_file(file("trainer.json"), json.substr(0, json.size() / 2));
  EXPECT_EQ(refusal(), fmt::format("{}: truncated or damaged: {} bytes that are not valid JSON",
                                   file("trainer.json").string(), json.size() / 2));
  write_file(file("trainer.json"), "[]");
  EXPECT_EQ(refusal(), file("trainer.json").string() + ": not the description of a gyre checkpoint");
  fs::remove(file("trainer.json"));
  EXPECT_EQ(refusal(), file("trainer.json").string() + ": missing");
  EXPECT_EQ(error_of<FileError>([&] { read_checkpoint(file("model.safetensors")); }),
            file("model.safetensors").string() + ": not a checkpoint directory");
  EXPECT_EQ(error_of<FileError>([&] { read_checkpoint(folder_.path() / "none"); }),
            (folder_.path() / "none").string() + ": does not exist");
}

TEST_F(CheckpointTest, RefusesALaterFormat) {
  std::string json = read_file(file("trainer.json"));
  const std::string version = "\"version\": 1";
  json.replace(json.find(version), version.size(), "\"version\": 2");
  write_file(file("trainer.json"), json);
  EXPECT_EQ(refusal(), file("trainer.json").string() + ": format version 2, this program reads 1");
}

TEST_F(CheckpointTest, LoadsRawOrAveragedWeights) {
  const Checkpoint read = read_checkpoint(path_);
  EXPECT_TRUE(same(load_model(read)->state(), checkpoint_.ema));
  EXPECT_TRUE(same(load_model(read, "ema")->state(), checkpoint_.ema));
  EXPECT_TRUE(same(load_model(read, "raw")->state(), checkpoint_.weights));
  EXPECT_EQ(error_of<ValueError>([&] { load_model(read, "best"); }), "weights 'best': expected ema or raw");
  Checkpoint plain = checkpoint_;
  plain.ema.clear();
  EXPECT_TRUE(same(load_model(plain, "ema")->state(), checkpoint_.weights));
}

TEST_F(CheckpointTest, NamesTensorsThatDoNotFitTheModel) {
  const auto error = [&](const Checkpoint& changed) {
    write_checkpoint(path_, changed);
    return error_of<FileError>([&] { load_model(read_checkpoint(path_), "raw"); });
  };
  const std::string prefix = file("model.safetensors").string() + ": weights ";
  Checkpoint changed = checkpoint_;
  const std::string name = changed.weights.begin()->first;
  changed.weights.erase(name);
  EXPECT_EQ(error(changed), prefix + "lack the tensor " + name);
  changed = checkpoint_;
  changed.weights["stranger"] = Tensor::ones({1});
  EXPECT_EQ(error(changed), prefix + "have the tensor stranger, which the model lacks");
  changed = checkpoint_;
  changed.weights[name] = Tensor::ones({2, 77});
  EXPECT_THAT(error(changed), StartsWith(prefix + "have " + name + " with shape [2, 77]"));
  changed.path.clear();
  EXPECT_THAT(error_of<Error>([&] { load_model(changed, "raw"); }), StartsWith("weights have " + name));
}

TEST_F(CheckpointTest, FailedWriteLeavesNothingBehind) {
  checkpoint_.weights["undefined"] = Tensor();
  EXPECT_THROW(write_checkpoint(path_.parent_path() / "next", checkpoint_), ValueError);
  EXPECT_EQ(std::distance(fs::directory_iterator(path_.parent_path()), fs::directory_iterator()), 1);
  const fs::path below_file = file("trainer.json") / "x";
  EXPECT_THAT(error_of<FileError>([&] { write_checkpoint(below_file, small_checkpoint(1)); }),
              StartsWith(file("trainer.json").string() + ": cannot create"));
}

}  // namespace
}  // namespace gyre
