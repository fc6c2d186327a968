#include "bench/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace gyre {
namespace {

using kernels::EqDirection;
using kernels::EqImplementation;
using testing::HasSubstr;

TuneKey key() { return {"1.2.3", "Some \"CPU\"", "avx2", "onednn 2.7.0", 2}; }

TuneTable small_table() {
  return {key(),
          {{"c4", EqDirection::forward, 1024, 64, 64, 1.0, 0.9, 3.0},
           {"c4", EqDirection::backward, 1024, 64, 64, 1.0, 0.97, 3.0},
           {"d4", EqDirection::forward, 1024, 64, 64, 1.0, 2.0, 0.5}}};
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const FileError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TuneTable, ReadsBackWhatItWrote) {
  const TuneTable table = small_table();
  const std::string text = encode_tune_table(table);
  const TuneTable again = decode_tune_table(text, "t.json");
  EXPECT_EQ(again.key, table.key);
  EXPECT_EQ(encode_tune_table(again), text);
  EXPECT_EQ(tune_table_id(again), tune_table_id(table));
  EXPECT_THAT(text, HasSubstr(tune_table_id(table)));
  TuneTable other = table;
  other.cells[0].fused = 1.1;
  EXPECT_NE(tune_table_id(other), tune_table_id(table));
  EXPECT_EQ(decode_tune_table(encode_tune_table({key(), {}}), "t.json").cells.size(), 0u);
}

TEST(TuneTable, TellsWhatIsWrongWithAFile) {
  const std::string text = encode_tune_table(small_table());
  const auto decode = [](const std::string& bytes) {
    return error_of([&] { decode_tune_table(bytes, "t.json"); });
  };
  EXPECT_THAT(decode(text.substr(0, text.size() / 2)), HasSubstr("t.json: truncated or damaged"));
  EXPECT_EQ(decode("{}"), "t.json: not a table of gyre tune");
  EXPECT_EQ(decode("[1]"), "t.json: not a table of gyre tune");
  EXPECT_THAT(decode(""), HasSubstr("t.json: truncated or damaged: 0 bytes"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string bytes = text;
    bytes.replace(bytes.find(from), from.size(), to);
    return decode(bytes);
  };
  EXPECT_THAT(changed("1024", "1025"), HasSubstr("t.json: damaged: CRC-32"));
  EXPECT_THAT(changed("\"rows\":1024", "\"rows\":\"a\""), HasSubstr("damaged: a value is missing or has"));
  EXPECT_THAT(changed("\"rows\":1024", "\"rows\":0"), HasSubstr("damaged: sizes and times must be positive"));
  EXPECT_THAT(changed("\"group\":\"c4\"", "\"group\":\"c5\""), HasSubstr("t.json: damaged: "));
  EXPECT_THAT(changed("\"forward\"", "\"sideways\""), HasSubstr("direction 'sideways'"));
  EXPECT_EQ(changed("\"version\": 1", "\"version\": 7"), "t.json: format version 7, this program reads 1");
}

TEST(TuneTable, RefusesAnotherMachine) {
  const TuneTable table = small_table();
  require_fit(table, key(), "t.json");
  const auto refusal = [&](auto change) {
    TuneKey here = key();
    change(here);
    return error_of([&] { require_fit(table, here, "t.json"); });
  };
  EXPECT_EQ(refusal([](TuneKey& k) { k.simd = "avx512"; }),
            "t.json: measured with instruction set avx2, this is avx512; run gyre tune again");
  EXPECT_THAT(refusal([](TuneKey& k) { k.gyre = "2.0.0"; }), HasSubstr("gyre 1.2.3, this is 2.0.0"));
  EXPECT_THAT(refusal([](TuneKey& k) { k.cpu = "Other"; }), HasSubstr("CPU Some \"CPU\", this is Other"));
  EXPECT_THAT(refusal([](TuneKey& k) { k.library = "onednn 3.0.0"; }),
              HasSubstr("library onednn 2.7.0, this is onednn 3.0.0"));
  EXPECT_EQ(refusal([](TuneKey& k) { k.threads = 1; }),
            "t.json: measured with 2 threads, this run has 1; run gyre tune again");
}

TEST(TuneTable, OnlyAClearWinChangesTheRule) {
  const auto choices = choices_of(small_table());
  const auto of = [&](const char* group, EqDirection direction) {
    const auto* choice = choices->find({Group::get(group), direction, 1024, 64, 64, 2});
    EXPECT_TRUE(choice);
    return choice ? *choice : kernels::EqTable::Choice{};
  };
  const kernels::EqShape usual{Group::get("c4"), EqDirection::backward, 1024, 64, 64, 2};
  EXPECT_EQ(of("c4", EqDirection::forward).any, EqImplementation::packed);
  EXPECT_EQ(of("c4", EqDirection::forward).flash, EqImplementation::packed);
  EXPECT_EQ(of("c4", EqDirection::backward).any, fixed_eq_choice(usual, false));
  EXPECT_EQ(of("d4", EqDirection::forward).any, EqImplementation::naive);
  EXPECT_EQ(of("d4", EqDirection::forward).flash, EqImplementation::fused);
  EXPECT_EQ(choices->id(), tune_table_id(small_table()));
}

TEST(Tune, MeasuresTheWholeGrid) {
  TuneOptions options;
  options.groups = {"c2", "c4"};
  options.most_rows = 16;
  options.most_channels = 5;
  options.rounds = 2;
  options.seconds = 1e-5;
  EXPECT_EQ(tune_grid_size(options), 2 * 3 * 2 * 2);
  std::int64_t steps = 0;
  const TuneTable table =
      tune(options, key(), [&](std::int64_t done, const TuneCell&) { EXPECT_EQ(done, ++steps); });
  EXPECT_EQ(steps, 24);
  ASSERT_EQ(table.cells.size(), 48u);
  EXPECT_EQ(decode_tune_table(encode_tune_table(table), "t.json").cells.size(), 48u);
  EXPECT_EQ(choices_of(table)->size(), 48u);
}

TEST(Tune, StopsWhenTheTimeIsUp) {
  TuneOptions options;
  options.budget = 1e-9;
  EXPECT_EQ(tune(options, key()).cells.size(), 0u);
  options.budget = 0;
  EXPECT_THROW(tune(options, key()), ValueError);
}

}  // namespace
}  // namespace gyre
