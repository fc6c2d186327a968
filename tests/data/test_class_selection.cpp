#include "data/class_selection.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "data/splits.h"
#include "tests/data/support.h"

namespace gyre {
namespace {

using test::error_of;
using ::testing::ElementsAre;

/// One grey pixel per sample that tells its index; labels 0, 1, 2, 3, 0, …
class Numbered : public Dataset {
 public:
  std::int64_t size() const override { return 10; }
  Sample get(std::int64_t i) const override {
    ++read;
    return {Tensor::full({1, 1, 1}, static_cast<double>(i), DType::u8), i % 4};
  }
  std::int64_t label(std::int64_t i) const override { return i % 4; }
  int channels() const override { return 1; }
  int image_size() const override { return 1; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::string name() const override { return "numbered"; }
  mutable int read = 0;

 private:
  std::vector<std::string> names_{"ant", "bee", "cat", "2"};
};

using Classes = std::vector<std::string>;

TEST(SelectClasses, KeepsSamplesAndRenumbersInTheOrderGiven) {
  const auto numbered = std::make_shared<Numbered>();
  const auto chosen = select_classes(numbered, Classes{"cat", "ant"});
  EXPECT_EQ(numbered->read, 0) << "labels alone decide";
  EXPECT_THAT(chosen->class_names(), ElementsAre("cat", "ant"));
  EXPECT_EQ(chosen->classes(), 2);
  ASSERT_EQ(chosen->size(), 5);
  std::vector<std::int64_t> pixels, labels;
  for (std::int64_t i = 0; i < chosen->size(); ++i) {
    const Sample sample = chosen->get(i);
    pixels.push_back(static_cast<std::int64_t>(sample.image.item()));
    labels.push_back(sample.label);
    EXPECT_EQ(chosen->label(i), sample.label);
  }
  EXPECT_THAT(pixels, ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(labels, ElementsAre(1, 0, 1, 0, 1));
}

TEST(SelectClasses, NumbersCountWhereNoNameDoes) {
  const auto numbered = std::make_shared<Numbered>();
  EXPECT_THAT(select_classes(numbered, Classes{"1", "2"})->class_names(), ElementsAre("bee", "2"));
}

TEST(SelectClasses, RefusesUnknownAndRepeatedClasses) {
  const auto numbered = std::make_shared<Numbered>();
  const auto error_with = [&](const Classes& classes) {
    return error_of<ValueError>([&] { select_classes(numbered, classes); });
  };
  EXPECT_EQ(
      error_with({"bees"}),
      "data.select: \"bees\" is not a class of numbered, which has 0 (ant) to 3 (2); did you mean bee?");
  EXPECT_EQ(error_with({"4"}), "data.select: \"4\" is not a class of numbered, which has 0 (ant) to 3 (2)");
  EXPECT_EQ(error_with({"ant", "0"}), "data.select: class 0 (ant) is given twice");
}

TEST(SelectClasses, SplitsAndLimitsCountWhatIsLeft) {
  const test::TempFolder folder;
  for (const auto& [split, count] : {std::pair("train", 40u), std::pair("t10k", 12u)}) {
    std::string labels;
    for (std::uint32_t i = 0; i < count; ++i) labels += static_cast<char>(i % 4);
    folder.write(fmt::format("{}-images-idx3-ubyte", split),
                 test::idx_bytes({count, 6, 6}, test::random_bytes(36 * count, count)));
    folder.write(fmt::format("{}-labels-idx1-ubyte", split), test::idx_bytes({count}, labels));
  }
  DataConfig config;
  config.dataset = "idx";
  config.path = folder.path().string();
  config.pad_to = 8;
  config.holdout = 5;
  config.select = {"3", "1"};
  const DataSplits splits = open_data(config, 1);
  EXPECT_EQ(splits.train->size(), 15);
  EXPECT_EQ(splits.holdout->size(), 5);
  EXPECT_EQ(splits.test->size(), 6);
  for (const auto& part : {splits.train, splits.holdout, splits.test}) {
    EXPECT_THAT(part->class_names(), ElementsAre("3", "1"));
    for (std::int64_t i = 0; i < part->size(); ++i) EXPECT_EQ(part->label(i), part->get(i).label);
  }
}

}  // namespace
}  // namespace gyre
