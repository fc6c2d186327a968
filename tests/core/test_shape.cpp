#include <gmock/gmock.h>

#include "core/error.h"
#include "core/shape.h"

namespace gyre {
namespace {

using testing::ThrowsMessage;

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).numel(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).numel(), 0);
  EXPECT_EQ((Shape{std::int64_t{1} << 40, std::int64_t{1} << 40, 0}).numel(), 0);
  EXPECT_THAT(
      [] {
        (Shape{std::int64_t{1} << 40, std::int64_t{1} << 40}).numel();
      },
      ThrowsMessage<ShapeError>("shape [1099511627776, 1099511627776] has more than 2^63 elements"));
}

TEST(Shape, IndexesFromBothEnds) {
  Shape shape{2, 3, 4};
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape.wrap(-3), 0);
  shape[-2] = 7;
  EXPECT_EQ(shape, (Shape{2, 7, 4}));
  EXPECT_THAT([&] { shape[3]; }, ThrowsMessage<ShapeError>("dimension 3 is out of range for [2, 7, 4]"));
  EXPECT_THAT([&] { shape[-4]; }, ThrowsMessage<ShapeError>("dimension -4 is out of range for [2, 7, 4]"));
  EXPECT_THAT([] { Shape{}.wrap(0); }, ThrowsMessage<ShapeError>("dimension 0 is out of range for []"));
}

TEST(Shape, StridesOfADenseTensor) {
  EXPECT_EQ((Shape{2, 3, 4}).dense_strides(), (Shape{12, 4, 1}));
  EXPECT_EQ((Shape{2, 0, 4}).dense_strides(), (Shape{4, 4, 1}));
  EXPECT_EQ(Shape{}.dense_strides().rank(), 0);
}

TEST(Shape, ComparesOnlyItsExtents) {
  EXPECT_EQ(Shape::filled(2, 5), (Shape{5, 5}));
  EXPECT_NE((Shape{5, 0}), (Shape{5}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
}

TEST(Shape, HoldsEightDimensions) {
  Shape shape = Shape::filled(7, 1);
  shape.push_back(2);
  EXPECT_EQ(shape.rank(), 8);
  EXPECT_EQ(shape.str(), "[1, 1, 1, 1, 1, 1, 1, 2]");
  EXPECT_THAT([&] { shape.push_back(1); }, ThrowsMessage<ShapeError>("a shape has at most 8 dimensions"));
  EXPECT_THAT(
      [] {
        Shape({1, 1, 1, 1, 1, 1, 1, 1, 1});
      },
      ThrowsMessage<ShapeError>("a shape has at most 8 dimensions, not 9"));
  EXPECT_THAT([] { Shape::filled(-1, 1); },
              ThrowsMessage<ShapeError>("a shape has 0 to 8 dimensions, not -1"));
}

TEST(Shape, Broadcasts) {
  EXPECT_EQ(broadcast_shapes({2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes({}, {3}), (Shape{3}));
  EXPECT_EQ(broadcast_shapes({1, 3}, {0, 1}), (Shape{0, 3}));
  EXPECT_THAT(
      [] {
        broadcast_shapes({2, 3}, {4, 1, 2});
      },
      ThrowsMessage<ShapeError>("shapes [2, 3] and [4, 1, 2] do not broadcast"));
  EXPECT_THROW(broadcast_shapes({0}, {2}), ShapeError);
}

}  // namespace
}  // namespace gyre
