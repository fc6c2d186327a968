#include "data/transform.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "data/image.h"
#include "tests/data/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::random_image;
using ::testing::HasSubstr;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
using Canvas = std::vector<std::vector<double>>;  // pixel values, by row

std::vector<float> placed(const Pipeline& pipeline, const Tensor& image, const Placement& placement) {
  std::vector<float> slot(static_cast<std::size_t>(pipeline.slot_size()), nan);
  pipeline.place(image, placement, slot);
  return slot;
}

/// Step by step what Pipeline::place does in one pass.
std::vector<float> reference(const Tensor& image, const Placement& placement, const Preprocessing& form) {
  std::vector<float> result;
  const auto size = static_cast<std::size_t>(form.size);
  for (std::int64_t c = 0; c < form.channels; ++c) {
    Canvas canvas(size, std::vector<double>(size, 0));
    for (std::int64_t y = 0; y < image.size(1); ++y) {
      for (std::int64_t x = 0; x < image.size(2); ++x) {
        const std::int64_t to_y = y + (form.size - form.native_size) / 2 + placement.dy;
        const std::int64_t to_x = x + (form.size - form.native_size) / 2 + placement.dx;
        if (to_y >= 0 && to_y < form.size && to_x >= 0 && to_x < form.size)
          canvas[static_cast<std::size_t>(to_y)][static_cast<std::size_t>(to_x)] = image.at({c, y, x});
      }
    }
    if (placement.flip)
      for (auto& row : canvas) std::reverse(row.begin(), row.end());
    for (int turn = 0; turn < placement.quarter_turns; ++turn) {
      Canvas turned = canvas;  // counter-clockwise: the right column becomes the top row
      for (std::size_t i = 0; i < size; ++i)
        for (std::size_t j = 0; j < size; ++j) turned[i][j] = canvas[j][size - 1 - i];
      canvas = turned;
    }
    const auto channel = static_cast<std::size_t>(c);
    for (const auto& row : canvas)
      for (const double v : row)
        result.push_back(static_cast<float>((v / 255 - form.mean[channel]) / form.std[channel]));
  }
  return result;
}

TEST(Pipeline, PlacesLikeTheStepsOneByOne) {
  for (const int channels : {1, 3}) {
    Preprocessing form{channels, 6, 10, {0.2}, {0.5}};
    if (channels == 3) form.mean = {0.1, 0.2, 0.3}, form.std = {0.4, 0.5, 0.6};
    const Pipeline pipeline(form);
    const Tensor image = random_image(channels, 6, 6, 3);
    for (const int dx : {-9, -3, 0, 1, 9})
      for (const int dy : {-4, 0, 2, 9})
        for (const bool flip : {false, true})
          for (const int turns : {0, 1, 2, 3}) {
            const Placement placement{dx, dy, flip, turns};
            ASSERT_EQ(placed(pipeline, image, placement), reference(image, placement, form))
                << dx << " " << dy << " " << flip << " " << turns;
          }
  }
}

TEST(Pipeline, FourQuarterTurnsAndTwoFlipsAreTheIdentity) {
  const Pipeline pipeline(Preprocessing{1, 8, 8, {0}, {1.0 / 255}});
  const Tensor image = random_image(1, 8, 8, 4);
  const auto repeat = [&](const Placement& placement, int times) {
    Tensor current = image;
    for (int i = 0; i < times; ++i) {
      const std::vector<float> slot = placed(pipeline, current, placement);
      std::vector<std::uint8_t> bytes;
      for (const float v : slot) bytes.push_back(static_cast<std::uint8_t>(std::lround(v)));
      current = Tensor::from(bytes, {1, 8, 8});
    }
    return current.to_vector();
  };
  EXPECT_EQ(repeat({0, 0, false, 1}, 4), image.to_vector());
  EXPECT_NE(repeat({0, 0, false, 1}, 2), image.to_vector());
  EXPECT_EQ(repeat({0, 0, true, 0}, 2), image.to_vector());
  EXPECT_NE(repeat({0, 0, true, 0}, 1), image.to_vector());
}

TEST(Pipeline, NormalisesPixelsAndPadding) {
  const Pipeline pipeline(Preprocessing{1, 2, 4, {0.2860}, {0.3530}});
  const Tensor image = Tensor::from(std::vector<std::uint8_t>{0, 51, 204, 255}, {1, 2, 2});
  const auto slot = placed(pipeline, image, {});
  EXPECT_FLOAT_EQ(slot[0], static_cast<float>((0.0 - 0.2860) / 0.3530));
  EXPECT_FLOAT_EQ(slot[6], static_cast<float>((0.2 - 0.2860) / 0.3530));
  EXPECT_FLOAT_EQ(slot[9], static_cast<float>((0.8 - 0.2860) / 0.3530));
  EXPECT_FLOAT_EQ(slot[10], static_cast<float>((1.0 - 0.2860) / 0.3530));
}

TEST(Pipeline, EvaluationDrawsNothing) {
  const Preprocessing form{1, 28, 32, {0.3}, {0.4}};
  const Pipeline evaluation(form);
  EXPECT_FALSE(evaluation.augments());
  const Tensor image = random_image(1, 28, 28, 5);
  RandomStream stream(1, Purpose::augment), untouched(1, Purpose::augment);
  std::vector<float> slot(32 * 32, nan);
  evaluation(image, stream, slot);
  EXPECT_EQ(slot, reference(image, {}, form));
  EXPECT_EQ(stream.bits(), untouched.bits());
}

TEST(Pipeline, ConvertsChannelsAndSize) {
  const Preprocessing grey{1, 28, 32, {0.3}, {0.4}}, rgb{3, 28, 28, {0, 0, 0}, {1, 1, 1}};
  const Tensor colour = random_image(3, 28, 28, 6), wide = random_image(3, 56, 90, 7);
  EXPECT_EQ(placed(Pipeline(grey), colour, {}), placed(Pipeline(grey), to_grey(colour), {}));
  const Tensor one = random_image(1, 28, 28, 8);
  const auto repeated = placed(Pipeline(rgb), one, {});
  for (std::size_t i = 0; i < 28 * 28; ++i) ASSERT_EQ(repeated[i], repeated[2 * 28 * 28 + i]);
  EXPECT_EQ(placed(Pipeline(rgb), wide, {}), placed(Pipeline(rgb), fit_square(wide, 28), {}));
  // A view that is not dense gives what its copy gives.
  const Tensor view = colour.transpose(1, 2);
  EXPECT_EQ(placed(Pipeline(rgb), view, {}), placed(Pipeline(rgb), view.clone(), {}));
}

TEST(Pipeline, RefusesWhatIsNoImage) {
  const Pipeline pipeline(Preprocessing{1, 4, 4, {0}, {1}});
  std::vector<float> slot(16), small(15);
  EXPECT_THAT(error_of<ShapeError>([&] { pipeline.place(random_image(1, 4, 4, 0), {}, small); }),
              HasSubstr("a slot of 15 values for 1 x 4 x 4"));
  for (const Tensor& wrong :
       {Tensor::zeros({1, 4, 4}), Tensor::zeros({2, 4, 4}, DType::u8), Tensor::zeros({4, 4}, DType::u8),
        Tensor::zeros({1, 0, 4}, DType::u8), Tensor()})
    EXPECT_THAT(error_of<ShapeError>([&] { pipeline.place(wrong, {}, slot); }), HasSubstr("u8 image"));
  EXPECT_THAT(error_of<ValueError>([] {
                Pipeline(Preprocessing{1, 4, 4, {0}, {1}}, {4, false, false});
              }),
              HasSubstr("data.augment.crop_padding: 4; allowed are 0 to 3"));
}

TEST(Placement, OptionsDoNotDisturbEachOther) {
  for (std::uint64_t i = 0; i < 50; ++i) {
    RandomStream a(3, Purpose::augment, 0, i), b(3, Purpose::augment, 0, i), c(3, Purpose::augment, 0, i);
    const Placement all = draw_placement({4, true, true}, a);
    const Placement turns = draw_placement({0, false, true}, b);
    const Placement shift = draw_placement({4, false, false}, c);
    EXPECT_EQ(all.quarter_turns, turns.quarter_turns);
    EXPECT_EQ(all.dx, shift.dx);
    EXPECT_EQ(all.dy, shift.dy);
    EXPECT_TRUE(turns.dx == 0 && turns.dy == 0 && !turns.flip && !shift.flip && shift.quarter_turns == 0);
  }
}

TEST(Placement, CoversItsRangeEvenly) {
  std::array<int, 5> dx{}, dy{};
  std::array<int, 4> turns{};
  int flips = 0;
  constexpr int draws = 4000;
  for (int i = 0; i < draws; ++i) {
    RandomStream stream(8, Purpose::augment, 1, static_cast<std::uint64_t>(i));
    const Placement placement = draw_placement({2, true, true}, stream);
    ++dx.at(static_cast<std::size_t>(placement.dx + 2));
    ++dy.at(static_cast<std::size_t>(placement.dy + 2));
    ++turns.at(static_cast<std::size_t>(placement.quarter_turns));
    flips += placement.flip;
  }
  // Five standard deviations of a binomial count.
  const auto expect_near = [](int count, double p) {
    EXPECT_NEAR(count, draws * p, 5 * std::sqrt(draws * p * (1 - p)));
  };
  for (const int count : dx) expect_near(count, 0.2);
  for (const int count : dy) expect_near(count, 0.2);
  for (const int count : turns) expect_near(count, 0.25);
  expect_near(flips, 0.5);
}

TEST(Preprocessing, MapRoundTripIsExact) {
  const Preprocessing form{3, 224, 224, {0.485, 0.456, 1.0 / 3}, {0.229, 0.1 + 0.2, 1e-7}};
  EXPECT_EQ(Preprocessing::from_map(form.to_map()), form);
  EXPECT_EQ(form.to_map().at("mean"), "0.485,0.456,0.3333333333333333");
}

TEST(Preprocessing, RefusesBadMaps) {
  const auto with = [](const std::string& key, const std::string& value) {
    auto map = Preprocessing{}.to_map();
    map[key] = value;
    return error_of<ValueError>([&] { Preprocessing::from_map(map); });
  };
  EXPECT_EQ(with("size", "32px"), "preprocessing size: \"32px\" is no number");
  EXPECT_EQ(with("mean", "0.1,"), "preprocessing mean: \"\" is no number");
  EXPECT_EQ(with("colour", "red"), "preprocessing has an unknown key colour");
  EXPECT_THAT(with("fit", "stretch"), HasSubstr("fit \"stretch\"; only central_square is known"));
  EXPECT_EQ(with("mean", "0.1,0.2"), "mean: 2 values, images have 1 channel");
  EXPECT_THAT(with("std", "0"), HasSubstr("std: 0; a positive number is needed"));
  EXPECT_THAT(with("std", "nan"), HasSubstr("a positive number"));
  EXPECT_EQ(with("size", "33"), "images of side 28 cannot be padded evenly to 33");
  EXPECT_EQ(with("size", "26"), "images of side 28 cannot be padded evenly to 26");
  EXPECT_EQ(with("channels", "2"), "preprocessing has 2 channels; allowed are 1 and 3");
  auto map = Preprocessing{}.to_map();
  map.erase("std");
  EXPECT_EQ(error_of<ValueError>([&] { Preprocessing::from_map(map); }), "preprocessing lacks std");
}

TEST(PreprocessImage, TakesAnyPicture) {
  const Preprocessing form{1, 28, 32, {0.3}, {0.4}};
  const Tensor own = random_image(1, 28, 28, 2);
  EXPECT_EQ(preprocess_image(own, form).shape(), (Shape{1, 32, 32}));
  EXPECT_EQ(placed(Pipeline(form), own, {}), reference(own, {}, form));
  const Tensor any = preprocess_image(random_image(3, 1, 77, 2), form);
  EXPECT_EQ(any.shape(), (Shape{1, 32, 32}));
  for (const double v : any.to_vector()) EXPECT_TRUE(std::isfinite(v));
}

}  // namespace
}  // namespace gyre
