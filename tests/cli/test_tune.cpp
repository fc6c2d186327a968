#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "tests/cli/program.h"
#include "tests/train/support.h"

namespace gyre {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class TuneCommand : public ::testing::Test {
 protected:
  TuneCommand() {
    test::write_tiny_data(folder_);
    Config config = test::tiny_config(folder_.path());
    config.train.epochs = 1;
    config.train.threads = 1;
    yaml_ = folder_.write("tiny.yaml", config_to_yaml(config)).string();
  }

  /// Writes a table for one thread and returns its id.
  std::string tune(const std::string& file, const std::string& budget = "1s") {
    const Outcome outcome =
        run_gyre({"tune", "--threads", "1", "--budget", budget, "--out", file, "--no-pin", "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const json object = json::parse(outcome.out);
    EXPECT_EQ(object.at("file"), file);
    EXPECT_GT(object.at("measured"), 0);
    return object.at("tune_table");
  }
  std::vector<std::string> train(const std::string& run, const std::vector<std::string>& more) const {
    std::vector<std::string> words{"train", yaml_, "--out", run, "--no-pin", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  test::TempFolder folder_;
  std::string yaml_;
};

TEST_F(TuneCommand, ATableStandsInTheRunAndAnotherOneIsToldOnResume) {
  const std::string table = path("new/tune.json"), run = path("run");
  const std::string id = tune(table);
  EXPECT_THAT(read_file(table), HasSubstr("\"crc32\": \"" + id + "\""));

  const Outcome first = run_gyre(train(run, {"--tune-table", table, "--max-steps", "3"}));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(json::parse(first.out).at("tune_table"), id);
  EXPECT_EQ(json::parse(read_file(run + "/kernels.json")).at("tune_table"), id);

  const Outcome same = run_gyre(train(run, {"--resume", "--max-steps", "4"}), {{"GYRE_TUNE", table}});
  EXPECT_EQ(same.code, 0);
  EXPECT_EQ(same.err, "");
  const Outcome other = run_gyre(train(run, {"--resume", "--tune-table", "none"}));
  EXPECT_EQ(other.code, 0);
  EXPECT_EQ(other.err, "gyre: warning: " + run + ": kernels were chosen by tune table " + id +
                           ", now by the fixed rule: results may differ in their last digits\n");
  EXPECT_TRUE(json::parse(other.out).at("tune_table").is_null());
}

TEST_F(TuneCommand, ANamedTableMustFit) {
  const std::string table = path("tune.json");
  tune(table);
  const auto refusal = [&](const std::vector<std::string>& more, const Environment& environment) {
    const Outcome outcome = run_gyre(train(path("run"), more), environment);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_EQ(refusal({"--threads", "2", "--tune-table", table}, {}),
            "gyre: error: " + table + ": measured with 1 threads, this run has 2; run gyre tune again\n");
  const std::string text = read_file(table);
  write_file(table, text.substr(0, text.size() - 100));
  EXPECT_THAT(refusal({}, {{"GYRE_TUNE", table}}), HasSubstr(table + ": truncated or damaged"));
  EXPECT_THAT(refusal({"--tune-table", path("missing")}, {}), HasSubstr(path("missing") + ": "));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

TEST_F(TuneCommand, TheUsualTableIsFoundAndLeftOutIfItDoesNotFit) {
  const Environment home{{"XDG_CONFIG_HOME", path("config")}, {"GYRE_TUNE", ""}};
  const Outcome tuned = run_gyre({"tune", "--threads", "1", "--budget", "0.2s", "--no-pin", "--json"}, home);
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const std::string table = path("config/gyre/tune.json");
  EXPECT_EQ(json::parse(tuned.out).at("file"), table);
  const Outcome fits = run_gyre(train(path("one"), {"--max-steps", "1"}), home);
  EXPECT_EQ(fits.err, "");
  EXPECT_EQ(json::parse(fits.out).at("tune_table"), json::parse(tuned.out).at("tune_table"));
  write_file(table, "{");
  const Outcome damaged = run_gyre(train(path("two"), {"--max-steps", "1"}), home);
  EXPECT_EQ(damaged.code, 0);
  EXPECT_THAT(damaged.err, HasSubstr("gyre: warning: kernels follow the fixed rule: " + table));
  EXPECT_TRUE(json::parse(damaged.out).at("tune_table").is_null());
}

TEST_F(TuneCommand, TellsWrongUse) {
  EXPECT_THAT(run_gyre({"tune", "--group", "c5"}).err, HasSubstr("'c5' is not one of c1, c2"));
  EXPECT_THAT(run_gyre({"tune", "--budget", "soon"}).err, HasSubstr("--budget: "));
  EXPECT_EQ(run_gyre({"tune", "--budget", "soon"}).code, 2);
  EXPECT_THAT(run_gyre({"tune", "--help"}).out, HasSubstr("--budget"));
}

TEST(BenchSweep, CountsWrongAndSlower) {
  const Outcome outcome =
      run_gyre({"bench", "op", "--sweep", "3", "--seed", "5", "--repeats", "1", "--no-pin", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json object = json::parse(outcome.out);
  EXPECT_EQ(object.at("wrong"), 0);
  EXPECT_EQ(object.at("measured"), 6);
  EXPECT_EQ(object.at("results").size(), 6u);
  EXPECT_GT(object.at("median_ratio"), 0);
  EXPECT_THAT(run_gyre({"bench", "op", "--sweep", "2", "--no-pin"}).out, HasSubstr("wrong    0 of 4"));
}

}  // namespace
}  // namespace gyre
