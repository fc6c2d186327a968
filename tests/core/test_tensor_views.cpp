#include <gmock/gmock.h>

#include "core/tensor.h"

namespace gyre {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor counting(const Shape& shape, DType dtype = DType::f32) {
  return Tensor::arange(shape.numel(), dtype).reshape(shape);
}

TEST(TensorViews, PermuteMovesNoElement) {
  const Tensor x = counting({2, 3, 4});
  const Tensor y = x.permute({2, 0, -2});
  EXPECT_EQ(y.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(y.storage(), x.storage());
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t k = 0; k < 4; ++k) EXPECT_EQ(y.at({k, i, j}), x.at({i, j, k}));
    }
  }
  EXPECT_EQ(x.transpose(0, -1).shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(Tensor::ones({}).permute({}).item(), 1);
  EXPECT_THAT(
      [&] {
        x.permute({0, 0, 1});
      },
      ThrowsMessage<ShapeError>("[0, 0, 1] is no permutation of the dimensions of f32[2, 3, 4] cpu"));
  EXPECT_THROW(x.permute({0, 1}), ShapeError);
  EXPECT_THROW(x.permute({0, 1, 3}), ShapeError);
  EXPECT_THROW(x.transpose(0, 3), ShapeError);
}

TEST(TensorViews, SliceStepsAndKeepsInside) {
  const Tensor x = counting({2, 7});
  EXPECT_THAT(x.slice(1, 1, 7, 3).to_vector(), ElementsAre(1, 4, 8, 11));
  EXPECT_THAT(x.slice(-1, 0, 7, 10).to_vector(), ElementsAre(0, 7));
  EXPECT_THAT(x.slice(1, 2, 6, 2).slice(1, 1, 2).to_vector(), ElementsAre(4, 11));
  EXPECT_EQ(x.slice(0, 2, 2).shape(), (Shape{0, 7}));
  EXPECT_THAT([&] { x.slice(1, 3, 8); },
              ThrowsMessage<ShapeError>("slice 3:8:1 does not fit dimension 1 of f32[2, 7] cpu"));
  EXPECT_THROW(x.slice(1, -1, 3), ShapeError);
  EXPECT_THROW(x.slice(1, 4, 3), ShapeError);
  EXPECT_THROW(x.slice(1, 0, 3, 0), ShapeError);
  EXPECT_THROW(x.slice(2, 0, 1), ShapeError);
}

TEST(TensorViews, SelectDropsADimension) {
  const Tensor x = counting({2, 3});
  EXPECT_THAT(x.select(1, 2).to_vector(), ElementsAre(2, 5));
  EXPECT_THAT(x.select(0, 1).select(0, 1).item(), 4);
  EXPECT_THAT([&] { x.select(-1, 3); },
              ThrowsMessage<ShapeError>("index 3 is out of range for dimension -1 of f32[2, 3] cpu"));
  EXPECT_THROW(x.select(0, -1), ShapeError);
}

TEST(TensorViews, ExpandRepeatsWithoutMemory) {
  const Tensor x = counting({2, 1});
  const Tensor y = x.expand({3, 2, 2});
  EXPECT_EQ(y.strides(), (Shape{0, 1, 0}));
  EXPECT_EQ(y.storage(), x.storage());
  EXPECT_THAT(y.to_vector(), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1));
  EXPECT_EQ(x.expand({2, 0}).numel(), 0);
  EXPECT_THAT(
      [&] {
        x.expand({3, 1});
      },
      ThrowsMessage<ShapeError>("f32[2, 1] cpu does not expand to [3, 1]"));
  EXPECT_THROW(x.expand({2}), ShapeError);
  EXPECT_THROW(x.expand({-1, 2, 1}), ShapeError);
  EXPECT_THROW(x.expand({2, -1}), ShapeError);
}

TEST(TensorViews, UnsqueezeAndSqueezeAreInverse) {
  const Tensor x = counting({2, 3}).transpose(0, 1);
  for (int dim = -3; dim <= 2; ++dim) {
    const Tensor y = x.unsqueeze(dim);
    EXPECT_EQ(y.size(dim), 1) << dim;
    EXPECT_EQ(y.to_vector(), x.to_vector());
    EXPECT_EQ(y.squeeze(dim).shape(), x.shape());
    EXPECT_EQ(y.squeeze(dim).strides(), x.strides());
  }
  EXPECT_TRUE(counting({2, 3}).unsqueeze(1).is_contiguous());
  EXPECT_THAT([&] { x.squeeze(0); }, ThrowsMessage<ShapeError>("dimension 0 of f32[3, 2] cpu is not 1"));
  EXPECT_THAT([&] { x.unsqueeze(3); },
              ThrowsMessage<ShapeError>("dimension 3 cannot be inserted into f32[3, 2] cpu"));
  EXPECT_THROW(x.unsqueeze(-4), ShapeError);
}

TEST(TensorViews, ContiguityIgnoresUnitAndEmptyDimensions) {
  const Tensor x = counting({2, 1, 3});
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_TRUE(x.transpose(0, 1).is_contiguous());
  EXPECT_FALSE(x.transpose(0, 2).is_contiguous());
  EXPECT_TRUE(x.select(0, 1).is_contiguous());
  EXPECT_FALSE(x.slice(2, 0, 2).is_contiguous());
  EXPECT_TRUE(x.slice(2, 0, 0).is_contiguous());
  EXPECT_FALSE(Tensor::ones({1}).expand({2}).is_contiguous());
  EXPECT_EQ(x.contiguous().storage(), x.storage());
  EXPECT_NE(x.transpose(0, 2).contiguous().storage(), x.storage());
}

TEST(TensorViews, ReshapeSharesWhereStridesAllow) {
  const Tensor x = counting({2, 3, 4});
  const auto shares = [&](const Tensor& from, const Shape& shape) {
    const Tensor to = from.reshape(shape);
    EXPECT_EQ(to.to_vector(), from.to_vector()) << shape.str();
    return to.storage() == x.storage();
  };
  EXPECT_TRUE(shares(x, {4, 6}));
  EXPECT_TRUE(shares(x, {24, 1, 1}));
  EXPECT_TRUE(shares(x.select(0, 1), {2, 6}));
  EXPECT_TRUE(shares(x.transpose(0, 1), {3, 2, 2, 2}));  // splitting needs no copy
  EXPECT_FALSE(shares(x.transpose(0, 1), {6, 4}));       // merging what is not adjacent does
  EXPECT_TRUE(shares(x.transpose(0, 1), {1, 3, 1, 2, 4, 1}));
  EXPECT_TRUE(shares(x.permute({2, 0, 1}), {4, 6}));  // 0 and 1 are still adjacent
  EXPECT_FALSE(shares(x.permute({2, 0, 1}), {8, 3}));
  EXPECT_TRUE(shares(x.slice(2, 0, 4, 2), {12}));  // one stride of 2 walks through all
  EXPECT_FALSE(shares(x.slice(2, 0, 3), {18}));
  EXPECT_TRUE(shares(x.slice(2, 0, 3), {6, 3}));
  EXPECT_TRUE(shares(x.select(0, 0).unsqueeze(0).expand({5, 3, 4}), {5, 12}));
  EXPECT_FALSE(shares(x.select(0, 0).unsqueeze(0).expand({5, 3, 4}), {15, 4}));
}

TEST(TensorViews, ReshapeInfersOneExtent) {
  const Tensor x = counting({2, 6});
  EXPECT_EQ(x.reshape({-1}).shape(), (Shape{12}));
  EXPECT_EQ(x.reshape({3, -1, 2}).shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(Tensor::empty({0, 4}).reshape({-1, 4}).shape(), (Shape{0, 4}));
  EXPECT_EQ(Tensor::empty({0, 4}).reshape({2, 0}).shape(), (Shape{2, 0}));
  EXPECT_EQ(Tensor::ones({1, 1}).reshape({}).rank(), 0);
  EXPECT_EQ(Tensor::ones({}).reshape({1, 1}).rank(), 2);
  EXPECT_THAT(
      [&] {
        x.reshape({5, 2});
      },
      ThrowsMessage<ShapeError>("f32[2, 6] cpu does not reshape to [5, 2]"));
  EXPECT_THAT(
      [&] {
        x.reshape({-1, 5});
      },
      ThrowsMessage<ShapeError>("f32[2, 6] cpu does not reshape to [-1, 5]"));
  EXPECT_THAT(
      [&] {
        x.reshape({-1, -1});
      },
      ThrowsMessage<ShapeError>("[-1, -1] is no shape to reshape f32[2, 6] cpu to"));
  EXPECT_THROW(x.reshape({-2, -6}), ShapeError);
  EXPECT_THROW(Tensor::empty({0}).reshape({-1, 0}), ShapeError);  // any extent would do
}

TEST(TensorViews, ViewsOfAStorageStayInside) {
  const auto storage = counting({12}).storage();
  EXPECT_THAT(Tensor::view_of(storage, {2, 3}, {1, 4}, DType::f32, 1).to_vector(),
              ElementsAre(1, 5, 9, 2, 6, 10));
  EXPECT_THAT(Tensor::view_of(storage, {3}, {-2}, DType::f32, 4).to_vector(), ElementsAre(4, 2, 0));
  EXPECT_EQ(Tensor::view_of(storage, {0}, {1}, DType::f32, 12).numel(), 0);
  EXPECT_THAT(
      [&] {
        Tensor::view_of(storage, {2, 3}, {1, 4}, DType::f32, 3);
      },
      ThrowsMessage<ShapeError>(
          "a view of shape [2, 3], strides [1, 4] and offset 3 reaches outside a storage "
          "of 12 f32 elements"));
  EXPECT_THROW(Tensor::view_of(storage, {7}, {1}, DType::f64), ShapeError);
  EXPECT_THROW(Tensor::view_of(storage, {3}, {-2}, DType::f32, 3), ShapeError);
  EXPECT_THROW(Tensor::view_of(storage, {1}, {1}, DType::f32, -1), ShapeError);
  EXPECT_THROW(Tensor::view_of(storage, {0}, {1}, DType::f32, 13), ShapeError);
  EXPECT_THROW(Tensor::view_of(storage, {-1}, {1}, DType::f32), ShapeError);
  EXPECT_THROW(Tensor::view_of(storage, {2}, {1, 1}, DType::f32), ShapeError);
  EXPECT_THAT([&] { Tensor::view_of(storage, {3}, {std::int64_t{1} << 62}, DType::f32); },
              ThrowsMessage<ShapeError>(HasSubstr("is too large")));
  EXPECT_THROW(Tensor::view_of(nullptr, {1}, {1}, DType::f32), Error);
}

}  // namespace
}  // namespace gyre
