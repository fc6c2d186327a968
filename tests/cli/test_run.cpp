#include <sched.h>

#include <chrono>
#include <csignal>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/device.h"
#include "core/random.h"
#include "tests/cli/program.h"

namespace gyre {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr int side = 12;
constexpr int test_count = 40;

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

/// Noise with a bright middle (class 0) or a bright edge (class 1): the same after a turn.
std::string picture(int label, RandomStream& stream) {
  std::string pixels;
  for (int r = 0; r < side; ++r) {
    for (int c = 0; c < side; ++c) {
      const bool middle = r >= 4 && r < 8 && c >= 4 && c < 8;
      pixels += static_cast<char>(stream.below(100) + (middle == (label == 0) ? 150 : 0));
    }
  }
  return pixels;
}

void write_split(const TemporaryFolder& folder, const std::string& stem, int count, std::uint64_t seed) {
  RandomStream stream(seed, Purpose::test);
  const auto n = static_cast<std::uint32_t>(count);
  std::string images = big_endian(0x803) + big_endian(n) + big_endian(side) + big_endian(side);
  std::string labels = big_endian(0x801) + big_endian(n);
  for (int i = 0; i < count; ++i) {
    images += picture(i % 2, stream);
    labels += static_cast<char>(i % 2);
  }
  folder.write("data/" + stem + "-images-idx3-ubyte", images);
  folder.write("data/" + stem + "-labels-idx1-ubyte", labels);
}

/// A small data set, a configuration for it, and a run directory.
class Run : public testing::Test {
 protected:
  Run() {
    write_split(folder_, "train", 96, 1);
    write_split(folder_, "t10k", test_count, 2);
    config_ = folder_.write(
        "tiny.yaml",
        "model: {name: eq_vit, image_size: 12, patch_size: 4, width: 16, depth: 1, heads: 2, classes: 2}\n"
        "data: {dataset: idx, path: " +
            folder_ / "data" +
            ", holdout: 16, pad_to: 0, mean: [0.3], std: [0.3], workers: 1}\n"
            "train: {epochs: 3, batch_size: 8, ema_decay: 0.9, log_every: 1}\n"
            "optimizer: {learning_rate: 5e-3}\n");
    run_ = folder_ / "run";
  }

  std::vector<std::string> train(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"train", config_, "--out", run_, "--threads", "1", "--no-pin"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TemporaryFolder folder_;
  std::string config_, run_;
};

TEST_F(Run, AutoTakesTheCpuWhereNoDeviceAnswers) {
  if (cuda_unavailable_reason().empty()) GTEST_SKIP() << "a CUDA device answers here";
  const Outcome outcome = run_gyre(train({"--device", "auto", "--dry-run"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("\nmachine      " + describe(Device::cpu()) + ", 1 threads"));
}

TEST_F(Run, TrainEvalPredict) {
  const Outcome trained = run_gyre(train({"--json"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const json summary = json::parse(trained.out);
  EXPECT_EQ(summary.at("run"), run_);
  EXPECT_EQ(summary.at("steps"), 30);
  EXPECT_EQ(summary.at("epochs"), 3);
  EXPECT_GT(summary.at("best").at("top1"), 60);
  EXPECT_GT(summary.at("last").at("loss"), 0);
  EXPECT_GT(summary.at("images_per_s"), 0);
  EXPECT_GT(summary.at("peak_memory_mb"), 0);

  const Outcome evaluated = run_gyre({"eval", run_, "--rotations", "--json", "--threads", "1"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const json result = json::parse(evaluated.out);
  EXPECT_EQ(result.at("model"), "eq_vit");
  EXPECT_EQ(result.at("samples"), test_count);
  EXPECT_GT(result.at("top1"), 60);
  ASSERT_EQ(result.at("rotations").size(), 4u);
  for (int i = 0; i < 4; ++i) {
    const json& turned = result.at("rotations")[static_cast<std::size_t>(i)];
    EXPECT_EQ(turned.at("degrees"), 90 * i);
    EXPECT_EQ(turned.at("top1"), result.at("top1"));
    EXPECT_LT(turned.at("max_logit_change"), 1e-4);
  }

  const Outcome naive = run_gyre({"eval", run_, "--backend", "naive", "--json"});
  ASSERT_EQ(naive.code, 0) << naive.err;
  EXPECT_EQ(json::parse(naive.out).at("backend"), "naive");
  EXPECT_EQ(json::parse(naive.out).at("top1"), result.at("top1"));
  EXPECT_NEAR(json::parse(naive.out).at("loss").get<double>(), result.at("loss").get<double>(), 1e-5);

  RandomStream stream(5, Purpose::test);
  const std::string header = fmt::format("P5\n{} {}\n255\n", side, side);
  const std::string middle = folder_.write("middle.pgm", header + picture(0, stream));
  const std::string edge = folder_.write("edge.pgm", header + picture(1, stream));
  const Outcome predicted = run_gyre({"predict", run_, middle, edge, "--top", "1", "--json"});
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  const json predictions = json::parse(predicted.out).at("predictions");
  ASSERT_EQ(predictions.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(predictions[i].at("file"), i == 0 ? middle : edge);
    ASSERT_EQ(predictions[i].at("classes").size(), 1u);
    EXPECT_EQ(predictions[i].at("classes")[0].at("index"), i);
    EXPECT_EQ(predictions[i].at("classes")[0].at("name"), std::to_string(i));
  }
  const Outcome all = run_gyre({"predict", run_, middle, "--json"});
  double sum = 0, last = 2;
  const json ranked = json::parse(all.out).at("predictions")[0].at("classes");
  for (const json& c : ranked) {
    EXPECT_LE(c.at("probability").get<double>(), last);
    last = c.at("probability");
    sum += last;
  }
  EXPECT_NEAR(sum, 1, 1e-6);

  const Outcome broken = run_gyre({"predict", run_, folder_.write("broken.png", "\x89PNG")});
  EXPECT_EQ(broken.code, 1);
  EXPECT_EQ(broken.out, "");
  EXPECT_EQ(broken.err, fmt::format("gyre: error: {}: damaged or cut-off PNG\n", folder_ / "broken.png"));

  // Bad pictures do not lose the good ones.
  const std::vector<std::string> mixed{"predict", run_, middle, folder_ / "broken.png", edge, "--top", "1"};
  const Outcome text = run_gyre(mixed);
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, ::testing::AllOf(HasSubstr(middle + "\n"), HasSubstr(edge + "\n")));
  EXPECT_EQ(text.err, broken.err);
  std::vector<std::string> as_json = mixed;
  as_json.push_back("--json");
  const Outcome partial = run_gyre(as_json);
  EXPECT_EQ(partial.code, 1);
  EXPECT_EQ(partial.err, broken.err);
  const json entries = json::parse(partial.out).at("predictions");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0], predictions[0]);
  EXPECT_EQ(entries[1], (json{{"file", folder_ / "broken.png"},
                              {"error", (folder_ / "broken.png") + ": damaged or cut-off PNG"}}));
  EXPECT_EQ(entries[2].at("classes")[0].at("index"), 1);
}

TEST_F(Run, TextForPeopleHasNoControlCharactersInAPipe) {
  for (const std::vector<std::string>& words :
       {train(), std::vector<std::string>{"eval", run_, "--rotations"},
        std::vector<std::string>{"bench", "op", "--channels", "4", "--rounds", "1", "--seconds", "0.001"},
        std::vector<std::string>{"bench", "model", config_, "--rounds", "1", "--seconds", "0.01"},
        std::vector<std::string>{"bench", "train", config_, "--rounds", "1", "--seconds", "0.01",
                                 "--profile"}}) {
    const Outcome outcome = run_gyre(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out, "");
    EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("\r")));
    EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("\x1b")));
  }
}

TEST_F(Run, BenchComparesThreeImplementations) {
  const Outcome outcome =
      run_gyre({"bench", "train", config_, "--rounds", "1", "--seconds", "0.01", "--json", "--threads", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("batch"), 8);
  EXPECT_EQ(result.at("machine").at("threads"), 1);
  ASSERT_EQ(result.at("results").size(), 3u);
  for (const json& row : result.at("results")) {
    EXPECT_THAT(row.at("impl"), testing::AnyOf("standard", "naive", "flash"));
    EXPECT_GT(row.at("images_per_s"), 0);
    EXPECT_GT(row.at("ratio_to_standard"), 0);
  }
}

TEST_F(Run, StopsResumesAndKnowsThatItIsComplete) {
  const Outcome first = run_gyre(train({"--max-steps", "7", "--json"}));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(json::parse(first.out).at("steps"), 7);
  EXPECT_EQ(run_gyre(train()).code, 1) << "a run must not be overwritten";
  const Outcome second = run_gyre(train({"--resume", "--json"}));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(json::parse(second.out).at("steps"), 30);
  const Outcome third = run_gyre(train({"--resume", "auto"}));
  EXPECT_EQ(third.code, 0);
  EXPECT_THAT(third.out + third.err, HasSubstr("complete"));
}

TEST_F(Run, DryRunWritesNothing) {
  const Outcome outcome = run_gyre(train({"--dry-run"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(run_));
}

TEST_F(Run, EvalOptionsAreObeyed) {
  ASSERT_EQ(run_gyre(train()).code, 0);
  const auto eval = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"eval", run_, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_gyre(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  };
  const json plain = eval({});
  EXPECT_EQ(plain.at("weights"), "ema");
  const json raw = eval({"--weights", "raw"});
  EXPECT_EQ(raw.at("weights"), "raw");
  EXPECT_NE(raw.at("loss"), plain.at("loss"));
  EXPECT_EQ(eval({"--split", "holdout"}).at("samples"), 16);
  EXPECT_EQ(eval({"--split", "train"}).at("samples"), 80);
  EXPECT_EQ(eval({"--batch-size", "7", "--workers", "0"}).at("top1"), plain.at("top1"));
  EXPECT_EQ(eval({}).at("rotations").size(), 0u);

  const TemporaryFolder other;
  write_split(other, "train", 96, 1);
  write_split(other, "t10k", 22, 3);
  EXPECT_EQ(eval({"--data", other / "data"}).at("samples"), 22);
}

/// Returns when the first record of the run is on disk.
void wait_for_records(const std::string& run) {
  const std::filesystem::path metrics = std::filesystem::path(run) / "metrics.jsonl";
  for (int i = 0; i < 3000; ++i) {
    std::error_code error;
    if (std::filesystem::file_size(metrics, error) > 0 && !error) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ADD_FAILURE() << "no records in " << metrics;
}

TEST_F(Run, InterruptSavesAndIsCode130) {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::filesystem::remove_all(run_);
    Program program(train({"--set", "train.epochs=100000"}));
    wait_for_records(run_);
    program.signal(signal);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_EQ(run_gyre({"eval", run_, "--json"}).code, 0);
  }
}

TEST_F(Run, ThreadsArePinnedUnlessToldOtherwise) {
  cpu_set_t own;
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
  const auto cpus = [&](const std::vector<std::string>& more, const std::string& pin) {
    std::filesystem::remove_all(run_);
    std::vector<std::string> words{"train",     config_, "--out", run_,
                                   "--threads", "1",     "--set", "train.epochs=100000"};
    words.insert(words.end(), more.begin(), more.end());
    Program program(words, {{"GYRE_PIN", pin}});
    wait_for_records(run_);
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(program.id(), sizeof set, &set), 0);
    program.signal(SIGTERM);
    program.wait();
    return CPU_COUNT(&set);
  };
  EXPECT_EQ(cpus({}, "1"), 1);
  EXPECT_EQ(cpus({"--no-pin"}, "1"), CPU_COUNT(&own));
  EXPECT_EQ(cpus({}, "0"), CPU_COUNT(&own));
}

}  // namespace
}  // namespace gyre
