#include "train/config.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/random.h"
#include "tests/train/decimal_comma.h"
#include "train/config_schema.h"

namespace gyre {
namespace {

std::string error_of(std::string_view yaml) {
  try {
    parse_config(yaml, "x.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string set_error(std::string_view text) {
  Config config;
  try {
    apply_override(config, text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Config, EmptySectionsKeepTheDefaults) {
  const Config config = parse_config("train:\noptimizer: {}\n", "x.yaml");
  EXPECT_EQ(config_to_yaml(config), config_to_yaml(Config{}));
  EXPECT_EQ(config.optimizer.learning_rate, 2e-3);
  EXPECT_EQ(config.train.epochs, 10);
}

TEST(Config, ReadsEverySection) {
  const Config config = parse_config(
      "model: {name: vit, depth: 2, drop_path: .1}\n"
      "data:\n  dataset: image_folder\n  path: pictures/train\n  mean: [0.5, 1e-1, .25]\n  augment: {flip: "
      "yes}\n"
      "optimizer: {name: sgd, learning_rate: 1.0e-4, nesterov: true}\n"
      "schedule: {shape: constant}\n"
      "train: {time_budget: 1h30m, seed: 18446744073709551615}\n"
      "checkpoint: {every_minutes: 0.5, keep_epochs: on}\n",
      "x.yaml");
  EXPECT_EQ(config.model.name, "vit");
  EXPECT_EQ(config.model.depth, 2);
  EXPECT_EQ(config.model.drop_path, 0.1);
  EXPECT_EQ(config.data.dataset, "image_folder");
  EXPECT_EQ(config.data.path, "pictures/train");
  EXPECT_EQ(config.data.mean, (std::vector<double>{0.5, 0.1, 0.25}));
  EXPECT_TRUE(config.data.augment.flip);
  EXPECT_FALSE(config.data.augment.quarter_turns);
  EXPECT_EQ(config.optimizer.name, "sgd");
  EXPECT_EQ(config.optimizer.learning_rate, 1e-4);
  EXPECT_TRUE(config.optimizer.nesterov);
  EXPECT_EQ(config.schedule.shape, "constant");
  EXPECT_EQ(config.train.time_budget, "1h30m");
  EXPECT_EQ(config.train.seed, 18446744073709551615ULL);
  EXPECT_EQ(config.checkpoint.every_minutes, 0.5);
  EXPECT_TRUE(config.checkpoint.keep_epochs);
}

TEST(Config, NumbersIgnoreSpellingQuotesAndLocale) {
  const DecimalComma locale;
  for (const char* text : {"1e-4", "1.0e-4", ".0001", "\"1e-4\"", "'0.0001'", "1E-04"}) {
    const Config config = parse_config(fmt::format("optimizer:\n  learning_rate: {}\n", text), "x.yaml");
    EXPECT_EQ(config.optimizer.learning_rate, 1e-4) << text;
    Config other;
    if (text[0] != '"' && text[0] != '\'') {
      apply_override(other, fmt::format("optimizer.learning_rate={}", text));
      EXPECT_EQ(other.optimizer.learning_rate, 1e-4) << text;
    }
  }
  EXPECT_NE(config_to_yaml(Config{}).find("weight_decay: 0.05\n"), std::string::npos);
  EXPECT_EQ(config_to_yaml(parse_config(config_to_yaml(Config{}), "x.yaml")), config_to_yaml(Config{}));
}

TEST(Config, AnchorsAliasesAndMergesWork) {
  const Config config = parse_config(
      "optimizer: {beta1: &b 0.75, beta2: *b}\n"
      "data: &shared {workers: 3}\n",
      "x.yaml");
  EXPECT_EQ(config.optimizer.beta1, 0.75);
  EXPECT_EQ(config.optimizer.beta2, 0.75);
  EXPECT_EQ(config.data.workers, 3);
}

TEST(Config, ErrorsNameFileLineAndKey) {
  EXPECT_EQ(error_of("train:\n  epochs: 3\n\noptimizer:\n  name: adamw\n\n  lerning_rate: 1\n"),
            "x.yaml:7: unknown key optimizer.lerning_rate, did you mean learning_rate?");
  EXPECT_EQ(error_of("optimiser:\n  name: sgd\n"),
            "x.yaml:1: unknown key optimiser, did you mean optimizer?");
  EXPECT_EQ(error_of("train:\n  learning_rate: 1\n"),
            "x.yaml:2: unknown key train.learning_rate, did you mean optimizer.learning_rate?");
  EXPECT_EQ(error_of("schedule:\n  zebra: 1\n"),
            "x.yaml:2: unknown key schedule.zebra, known here: shape, warmup, warmup_start, final");
  EXPECT_EQ(error_of("data:\n  augment:\n    flop: 1\n"),
            "x.yaml:3: unknown key data.augment.flop, did you mean flip?");
  EXPECT_EQ(error_of("train:\n  batch_size: 0\n"),
            "x.yaml:2: train.batch_size: 0 is out of range [1, 65536]");
  EXPECT_EQ(error_of("train:\n  batch_size: 1.5\n"),
            "x.yaml:2: train.batch_size: '1.5' is not a whole number");
  EXPECT_EQ(error_of("train:\n  batch_size: [1]\n"),
            "x.yaml:2: train.batch_size: expects one value, not a list");
  EXPECT_EQ(error_of("train:\n  batch_size:\n"),
            "x.yaml:2: train.batch_size: expects one value, not nothing");
  EXPECT_EQ(error_of("train:\n  label_smoothing: 1\n"),
            "x.yaml:2: train.label_smoothing: 1 is out of range [0, 1)");
  EXPECT_EQ(error_of("optimizer:\n  learning_rate: fast\n"),
            "x.yaml:2: optimizer.learning_rate: 'fast' is not a number");
  EXPECT_EQ(error_of("optimizer:\n  learning_rate: .nan\n"),
            "x.yaml:2: optimizer.learning_rate: '.nan' is not a number");
  EXPECT_EQ(error_of("optimizer:\n  nesterov: maybe\n"),
            "x.yaml:2: optimizer.nesterov: 'maybe' is not true or false");
  EXPECT_EQ(error_of("optimizer:\n  name: adam\n"),
            "x.yaml:2: optimizer.name: 'adam' is not one of adamw, sgd; did you mean adamw?");
  EXPECT_EQ(error_of("train:\n  time_budget: 10\n"),
            "x.yaml:2: train.time_budget: '10' is not a duration such as 90s, 4m or 1h30m");
  EXPECT_EQ(error_of("data:\n  mean: 0.5\n"), "x.yaml:2: data.mean: expects a list such as [1, 2], not text");
  EXPECT_EQ(error_of("data:\n  std: [1, 0]\n"), "x.yaml:2: data.std: 0 is out of range (0, 1000]");
  EXPECT_EQ(error_of("train: 5\n"), "x.yaml:1: train expects keys and values, not text");
  EXPECT_EQ(error_of("- train\n"), "x.yaml:1: the configuration expects keys and values, not a list");
  EXPECT_EQ(error_of("# nothing\n"), "x.yaml:1: the file holds no configuration");
  EXPECT_EQ(error_of("train:\n  epochs: 1\n  epochs: 2\n"), "x.yaml:3: key epochs is already set in line 2");
  EXPECT_EQ(error_of("train: {epochs: 1\n").substr(0, 7), "x.yaml:");
}

TEST(Config, MissingFileIsOneLine) {
  try {
    load_config("no/such/file.yaml");
    FAIL();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("no/such/file.yaml"), 0u) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(Config, FileAndOverridesInOrder) {
  const std::string path = testing::TempDir() + "gyre_config.yaml";
  std::ofstream(path) << "train:\n  epochs: 3\n  seed: 1\n";
  const Config config = load_config(path, std::vector<std::string>{"train.epochs=4", "train.epochs=5",
                                                                   "data.mean=[0.25]", "data.path=a=b c"});
  EXPECT_EQ(config.train.epochs, 5);
  EXPECT_EQ(config.train.seed, 1u);
  EXPECT_EQ(config.data.mean, std::vector<double>{0.25});
  EXPECT_EQ(config.data.path, "a=b c");
  EXPECT_THROW(load_config(path, std::vector<std::string>{"train.epochs=0"}), ConfigError);
  std::remove(path.c_str());
}

TEST(Config, OverrideErrorsNameTheText) {
  EXPECT_EQ(set_error("train.epochs"), "--set train.epochs: expects section.key=value");
  EXPECT_EQ(set_error("=3"), "--set =3: expects section.key=value");
  EXPECT_EQ(set_error("train.epochs=0"),
            "--set train.epochs=0: train.epochs: 0 is out of range [1, 1000000]");
  EXPECT_EQ(set_error("train.epoch=1"), "--set train.epoch=1: unknown key train.epoch, did you mean epochs?");
  EXPECT_EQ(set_error("trian.epochs=1"),
            "--set trian.epochs=1: unknown key trian.epochs, did you mean train?");
  EXPECT_EQ(set_error("epochs=1"), "--set epochs=1: unknown key epochs, did you mean train.epochs?");
  EXPECT_EQ(set_error("data.augment.flp=1"),
            "--set data.augment.flp=1: unknown key data.augment.flp, did you mean flip?");
  EXPECT_EQ(
      set_error("schedule=1"),
      "--set schedule=1: schedule is a section; give one of its keys: shape, warmup, warmup_start, final");
  EXPECT_EQ(set_error("data.mean=[1").substr(0, 19), "--set data.mean=[1:");
  EXPECT_EQ(set_error("train.epochs="), "--set train.epochs=: train.epochs: '' is not a whole number");
}

TEST(Config, OneFileGivesTheLengthOnce) {
  EXPECT_EQ(error_of("train:\n  epochs: 3\n  seed: 1\n  time_budget: 5m\n"),
            "x.yaml:4: train.time_budget and train.epochs (line 2) exclude each other");
  EXPECT_EQ(error_of("train: {epochs: 3, time_budget: \"\"}\n"), "no error");
  EXPECT_EQ(error_of("train: {epochs: 3, time_budget: 5m, updates: 0}\n").substr(0, 9), "x.yaml:1:");
  EXPECT_EQ(error_of("train: {epochs: 3, time_budget: 5m, updates: 9}\n"), "no error");
  const Config config = parse_config("train: {time_budget: 5m}\n", "x.yaml");
  EXPECT_EQ(parse_config(config_to_yaml(config), "saved.yaml").train.time_budget, "5m");
}

TEST(Config, TheLengthSetLastCounts) {
  Config config = parse_config("train: {time_budget: 5m}\n", "x.yaml");
  apply_override(config, "train.epochs=3");
  EXPECT_EQ(config.train.time_budget, "");
  EXPECT_EQ(config.train.epochs, 3);
  apply_override(config, "train.updates=70");
  EXPECT_EQ(config.train.updates, 70);
  apply_override(config, "train.time_budget=4m");
  EXPECT_EQ(config.train.updates, 0);
  EXPECT_EQ(config.train.time_budget, "4m");
  apply_override(config, "train.updates=70");
  EXPECT_EQ(config.train.time_budget, "");
  apply_override(config, "train.time_budget=");
  EXPECT_EQ(config.train.updates, 70);
  apply_override(config, "train.epochs=4");
  EXPECT_EQ(config.train.updates, 0);
}

TEST(Config, DurationsEndAtAThousandHours) {
  EXPECT_EQ(parse_duration("1000h"), 3.6e6);
  EXPECT_EQ(error_of("train:\n  time_budget: 2000h\n"),
            "x.yaml:2: train.time_budget: '2000h' is longer than 1000h");
  for (const std::string& text :
       {std::string(400, '9') + "s", std::string("9999999999999d"), std::string("1000h1s")})
    EXPECT_EQ(
        set_error("train.time_budget=" + text),
        fmt::format("--set train.time_budget={0}: train.time_budget: '{0}' is longer than 1000h", text));
  EXPECT_EQ(parse_duration(std::string(400, '0') + "5s"), 5);
}

/// Every key set to something else than its default.
std::string unusual_yaml() {
  return "model: {name: vit, image_size: 48, in_channels: 3, patch_size: 4, width: 96, depth: 5, heads: 3, "
         "mlp_ratio: 3.3,"
         " classes: 7, group: c2, pos_embed: quarter, pool: token, drop_path: 0.30000000000000004, dropout: "
         "0.1,"
         " backend: naive, products: 6, depths: [4, 5], window: 6, approximate: true}\n"
         "data: {dataset: idx, path: 'a: \"b\" #c\\d', classes: 4, select: [a, 2], holdout: 9, image_size: "
         "3, pad_to: 0,"
         " mean: [0.1, 1e-300, 5], std: [0.1, 0.2, 3], workers: 0, prefetch: 9, limit_train: 4, limit_test: "
         "5,"
         " augment: {crop_padding: 2, flip: true, quarter_turns: true}}\n"
         "optimizer: {name: sgd, learning_rate: 0.1234567890123456789, weight_decay: 1e-17, beta1: 0.1, "
         "beta2: 0.2,"
         " eps: 5e-324, momentum: 0.3333333333333333, nesterov: true}\n"
         "schedule: {shape: constant, warmup: 0.125, warmup_start: 0.7, final: 0.3}\n"
         "train: {epochs: 3, time_budget: 5m, updates: 999999999999, batch_size: 7, accumulation: 2, "
         "label_smoothing: 0.2,"
         " clip_norm: 0, ema_decay: 0.9999999999999999, seed: 18446744073709551615, eval_every: 2, "
         "bad_steps: 3,"
         " log_every: 7, threads: 2, deterministic: false, amp: bf16}\n"
         "checkpoint: {every_minutes: 0.1, every_epochs: 0, keep_epochs: true}\n"
         "finetune: {checkpoint: runs/a, weights: raw, head: new, layer_decay: 0.75, freeze: ['blocks.?']}\n";
}

TEST(Config, SavedConfigReadsBackExactly) {
  const Config config = parse_config(unusual_yaml(), "x.yaml");
  const std::string saved = config_to_yaml(config);
  const Config again = parse_config(saved, "saved.yaml");
  EXPECT_EQ(config_to_yaml(again), saved);
  EXPECT_EQ(again.model.drop_path, 0.30000000000000004);
  EXPECT_EQ(again.optimizer.learning_rate, 0.1234567890123456789);
  EXPECT_EQ(again.optimizer.eps, std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(again.data.path, config.data.path);
  EXPECT_EQ(again.data.path, "a: \"b\" #c\\d");
  EXPECT_EQ(again.data.mean, config.data.mean);
  EXPECT_EQ(again.train.seed, config.train.seed);
}

TEST(Config, EveryKeyIsReadAndSaved) {
  const Config config = parse_config(unusual_yaml(), "x.yaml"), plain;
  for (const ConfigField& field : config_schema()) {
    if (field.path() == "model.group") continue;  // the plain vit has none
    EXPECT_NE(field.write(config), field.write(plain)) << field.path() << " is ignored";
    EXPECT_FALSE(field.doc.empty() || field.legal.empty()) << field.path();
    EXPECT_EQ(field.doc.find('\n'), std::string::npos) << field.path();
  }
}

TEST(Config, TextsSurviveSaving) {
  for (const char* text : {"", "no", "NULL", "~", "1e5", " a ", "a#b", "a: b", "ümläut/ß", "tab\there",
                           "two\nlines", "'", "[x]", "&a", "-"}) {
    Config config;
    apply_override(config, fmt::format("data.path={}", text));
    EXPECT_EQ(config.data.path, text);
    EXPECT_EQ(parse_config(config_to_yaml(config), "x.yaml").data.path, text);
  }
}

TEST(Config, DamagedTextsGiveOneLineErrors) {
  RandomStream stream(11, Purpose::test);
  const std::string good = unusual_yaml();
  int errors = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (std::uint64_t edits = 1 + stream.below(4); edits > 0; --edits) {
      const std::size_t at = stream.below(text.size());
      switch (stream.below(3)) {
        case 0: text[at] = static_cast<char>(stream.below(256)); break;
        case 1: text.erase(at, 1 + stream.below(20)); break;
        default: text.insert(at, 1, ":,[]{}&*!|>'\"%@`#-?\n\t"[stream.below(22)]);
      }
    }
    try {
      parse_config(text, "x.yaml");
    } catch (const ConfigError& error) {
      ++errors;
      EXPECT_EQ(std::string_view(error.what()).substr(0, 7), "x.yaml:") << error.what();
    }
  }
  EXPECT_GT(errors, 1000);
  EXPECT_THROW(parse_config(std::string(100'000, '['), "x.yaml"), ConfigError);
}

TEST(Config, HelpIsTheDefaultConfiguration) {
  const std::string help = config_help();
  EXPECT_EQ(config_to_yaml(parse_config(help, "help")), config_to_yaml(Config{}));
  for (const ConfigField& field : config_schema()) {
    EXPECT_NE(help.find(field.name + ": " + field.write(Config{})), std::string::npos) << field.path();
    EXPECT_NE(help.find(field.doc), std::string::npos) << field.path();
  }
}

TEST(Config, NamedSizesFillOnlyWhatIsNotGiven) {
  std::string name;
  for (const std::string_view candidate : model_names()) {
    ModelConfig model;
    model.name = candidate;
    if (candidate != "vit" && candidate != "eq_vit" && resolve(model).depth != ModelConfig{}.depth)
      name = candidate;
  }
  ASSERT_FALSE(name.empty());
  ModelConfig expected;
  expected.name = name;
  expected = resolve(expected);
  const std::string yaml = fmt::format("model:\n  name: {}\n", name);
  EXPECT_EQ(parse_config(yaml, "x.yaml").model.depth, expected.depth);
  // A key that repeats the default of the struct still wins.
  const Config given = parse_config(yaml + fmt::format("  depth: {}\n", ModelConfig{}.depth), "x.yaml");
  EXPECT_EQ(given.model.depth, ModelConfig{}.depth);
  EXPECT_EQ(given.model.width, expected.width);
  EXPECT_EQ(parse_config(config_to_yaml(given), "x.yaml").model.depth, ModelConfig{}.depth);
}

TEST(Config, ReadsTheStagesOfSwin) {
  const ModelConfig model =
      parse_config("model:\n  name: eq_swin\n  depths: [1, 2]\n  approximate: true\n", "x.yaml").model;
  EXPECT_EQ(model.depths, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(model.depth, 3);
  EXPECT_TRUE(model.approximate);
  EXPECT_NE(error_of("model:\n  name: swin\n  depths: 4\n").find("expects a list such as [1, 2]"),
            std::string::npos);
}

TEST(Config, GroupsWithoutImagesAreRefusedByName) {
  EXPECT_NE(error_of("model:\n  group: c8\n")
                .find("x.yaml:2: model.group: c8 has no exact image action; legal "
                      "are c1, c2, mirror, c4, d4"),
            std::string::npos);
  EXPECT_NE(error_of("model:\n  group: c3\n").find("'c3' is not one of c1, c2, mirror, c4, d4"),
            std::string::npos);
}

TEST(Config, EveryShippedFileIsValid) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(GYRE_SOURCE_DIR "/configs")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_NO_THROW(load_config(entry.path())) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 12);
}

TEST(Config, UnknownModelHasASuggestion) {
  EXPECT_NE(error_of("model:\n  name: eq_vti\n").find("x.yaml:2: model.name: 'eq_vti' is not one of"),
            std::string::npos);
  EXPECT_NE(error_of("model:\n  name: eq_vti\n").find("did you mean eq_vit?"), std::string::npos);
}

}  // namespace
}  // namespace gyre
