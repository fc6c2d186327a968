#include "core/words.h"

#include <gtest/gtest.h>

#include <vector>

namespace gyre {
namespace {

TEST(Words, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("lerning_rate", "learning_rate"), 1u);
  EXPECT_EQ(edit_distance("optimzier", "optimizer"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Words, SuggestsOnlyWhatIsClose) {
  const std::vector<std::string> words{"beta1", "beta2", "learning_rate"};
  EXPECT_EQ(nearest_word("lerning_rat", words), "learning_rate");
  EXPECT_EQ(nearest_word("beta3", words), "beta1");
  EXPECT_EQ(nearest_word("FP16", std::vector<std::string>{"off", "bf16", "fp16"}), "fp16");
  EXPECT_EQ(nearest_word("dropout", words), std::nullopt);
  EXPECT_EQ(nearest_word("x", std::vector<std::string>{"a", "bc"}), std::nullopt);
}

}  // namespace
}  // namespace gyre
