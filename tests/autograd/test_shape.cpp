#include "autograd/ops/shape.h"

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduction.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::gradients_agree;
using test::random_tensor;
using testing::HasSubstr;
using Inputs = std::vector<Variable>;

TEST(ShapeOperations, ViewsShareTheData) {
  const Variable x(random_tensor({4, 3, 2}), true);
  const auto& storage = x.data().storage();
  EXPECT_EQ(reshape(x, {12, -1}).data().storage(), storage);
  EXPECT_EQ(permute(x, {2, 0, 1}).data().storage(), storage);
  EXPECT_EQ(transpose(x, 0, -1).data().storage(), storage);
  EXPECT_EQ(slice(x, 0, 1, 4, 2).data().storage(), storage);
  EXPECT_EQ(select(x, 1, 2).data().storage(), storage);
  EXPECT_EQ(expand(x, {5, 4, 3, 2}).data().storage(), storage);
  EXPECT_EQ(unsqueeze(x, -1).data().storage(), storage);
}

TEST(ShapeOperations, ReshapeGradients) {
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return reshape(in[0], {2, 6}); }, {{3, 4}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return reshape(in[0], {-1}); }, {{2, 3, 2}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return reshape(in[0], {4, 3, 1}); }, {{2, 3, 2}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return reshape(in[0], {1, 1}); }, {{1}}));
}

TEST(ShapeOperations, PermuteGradients) {
  // Not its own inverse, so that a permutation in place of the inverse shows.
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return permute(in[0], {2, 0, 1}); }, {{2, 3, 4}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return permute(in[0], {-1, 0, 1}); }, {{2, 3, 4}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return permute(in[0], {1, 2, 3, 0}); }, {{2, 3, 2, 2}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return permute(in[0], {1, 0}); }, {{1, 1}}));
}

TEST(ShapeOperations, TransposeGradients) {
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return transpose(in[0], 0, 1); }, {{2, 3}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return transpose(in[0], 0, -1); }, {{2, 3, 4}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return transpose(in[0], 0, 1); }, {{1, 1}}));
}

TEST(ShapeOperations, SliceGradients) {
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return slice(in[0], 0, 1, 3); }, {{4, 2}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return slice(in[0], -1, 1, 6, 2); }, {{2, 6}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return slice(in[0], 1, 0, 5, 3); }, {{2, 5, 2}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return slice(in[0], 0, 0, 1); }, {{1}}));
}

TEST(ShapeOperations, SelectGradients) {
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return select(in[0], 0, 2); }, {{3, 4}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return select(in[0], -2, 1); }, {{2, 3, 2}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return select(in[0], 0, 0); }, {{1}}));
}

TEST(ShapeOperations, ExpandGradients) {
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return expand(in[0], {4, 3}); }, {{3}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return expand(in[0], {2, 3, 4}); }, {{2, 1, 4}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return expand(in[0], {2, 3, 2}); }, {{1, 1}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return expand(in[0], {2, 2}); }, {{}}));
}

TEST(ShapeOperations, UnsqueezeGradients) {
  for (const int dim : {0, 1, 2, -1, -3}) {
    EXPECT_TRUE(gradients_agree([dim](Inputs& in) { return unsqueeze(in[0], dim); }, {{2, 3}})) << dim;
  }
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return unsqueeze(in[0], 0); }, {{}}));
}

TEST(ShapeOperations, ConcatGradients) {
  const auto along = [](int dim) { return [dim](Inputs& in) { return concat({in[0], in[1], in[2]}, dim); }; };
  EXPECT_TRUE(gradients_agree(along(0), {{2, 3}, {1, 3}, {3, 3}}));
  EXPECT_TRUE(gradients_agree(along(1), {{2, 1, 2}, {2, 3, 2}, {2, 2, 2}}));
  EXPECT_TRUE(gradients_agree(along(-1), {{2, 3}, {2, 1}, {2, 2}}));
  EXPECT_TRUE(gradients_agree(along(0), {{1}, {1}, {1}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return concat({in[0], in[0]}, 0); }, {{2, 3}}));
  const Variable fixed(random_tensor({2, 2}));
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return concat({fixed, in[0], fixed}, 1); }, {{2, 3}}));
}

TEST(ShapeOperations, ConcatOfAnEmptyPart) {
  const Variable a(random_tensor({0, 3}), true), b(random_tensor({2, 3}), true);
  const Variable y = concat({a, b}, 0);
  EXPECT_EQ(y.data().to_vector(), b.data().to_vector());
  sum(y).backward();
  EXPECT_EQ(a.grad().shape(), (Shape{0, 3}));
}

TEST(ShapeOperations, GatherGradients) {
  // Column 1 twice and column 2 never.
  const Tensor index = Tensor::from<std::int64_t>({3, 1, 0, 1, 4}, {5});
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return gather(in[0], index); }, {{3, 5}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return gather(in[0], Tensor::from<std::int64_t>({0}, {1})); },
                              {{1, 1}}));
  const Variable x(Tensor::from({10.0, 11.0, 12.0, 13.0, 14.0}, {1, 5}));
  EXPECT_EQ(gather(x, index).data().to_vector(), (std::vector<double>{13, 11, 10, 11, 14}));
}

TEST(ShapeOperations, GatherWithoutRows) {
  const Variable x(random_tensor({0, 5}), true);
  sum(gather(x, Tensor::arange(3))).backward();
  EXPECT_EQ(x.grad().shape(), (Shape{0, 5}));
}

TEST(ShapeOperations, PermuteRowsGradients) {
  const Tensor order = Tensor::from<std::int64_t>({2, 0, 1}, {3});
  const Tensor inverse = Tensor::from<std::int64_t>({1, 2, 0}, {3});
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return permute_rows(in[0], order, inverse); }, {{2, 3, 2}}));
  const Variable x(Tensor::from({10.0, 11.0, 12.0}, {1, 3, 1}));
  EXPECT_EQ(permute_rows(x, order, inverse).data().to_vector(), (std::vector<double>{12, 10, 11}));
  EXPECT_THAT(error_of([&] { permute_rows(x, Tensor::arange(4), inverse); }),
              HasSubstr("[1, 3, 1] does not fit orders of 4 and 3 rows"));
}

TEST(ShapeOperations, EmptyViews) {
  const Variable x(random_tensor({3, 2}), true);
  const Variable y = slice(x, 0, 1, 1);
  EXPECT_EQ(y.shape(), (Shape{0, 2}));
  sum(y).backward();
  EXPECT_EQ(x.grad().to_vector(), std::vector<double>(6));
}

TEST(ShapeOperations, Errors) {
  const Variable x(random_tensor({2, 3}), true);
  EXPECT_THAT(error_of([&] { reshape(x, {4, 2}); }), HasSubstr("[4, 2]"));
  EXPECT_THAT(error_of([&] { permute(x, {0, 0}); }), HasSubstr("[0, 0]"));
  EXPECT_THAT(error_of([&] { slice(x, 1, 2, 5); }), HasSubstr("2:5:1"));
  EXPECT_THAT(error_of([&] { select(x, 0, 2); }), HasSubstr("index 2"));
  EXPECT_THAT(error_of([&] { expand(x, {2, 4}); }), HasSubstr("[2, 4]"));
  EXPECT_THAT(error_of([&] { concat({x, Variable(random_tensor({2, 2}))}, 0); }), HasSubstr("[2, 2]"));
  EXPECT_THAT(error_of([&] { gather(x, Tensor::from<std::int64_t>({3}, {1})); }), HasSubstr("3"));
  EXPECT_NE(error_of([&] { concat(std::span<const Variable>(), 0); }), "no error");
}

}  // namespace
}  // namespace gyre
