#include "core/group_action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "core/error.h"
#include "core/random.h"

namespace gyre {
namespace {

Tensor random_tensor(const Shape& shape, std::uint64_t seed, DType dtype = DType::f64) {
  RandomStream stream(seed, Purpose::test);
  return random_uniform(shape, -1, 1, stream, dtype);
}

void expect_equal(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  EXPECT_EQ(a.to_vector(), b.to_vector());
}

// [[rot90(w, 1)]][i][j] = w[j][n-1-i], a counter-clockwise quarter turn, over the last two dimensions.
Tensor rot90(const Tensor& x) {
  const std::int64_t n = x.size(-1);
  Tensor result = Tensor::empty(x.shape(), x.dtype());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      result.select(-1, j).select(-1, i).copy_(x.select(-1, n - 1 - i).select(-1, j));
  return result;
}

Tensor reverse_columns(const Tensor& x) {
  Tensor result = Tensor::empty(x.shape(), x.dtype());
  for (std::int64_t j = 0; j < x.size(-1); ++j) result.select(-1, j).copy_(x.select(-1, x.size(-1) - 1 - j));
  return result;
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class ImageGroup : public testing::TestWithParam<std::string_view> {
 protected:
  const Group& group_ = Group::get(GetParam());
  const int order_ = group_.order();

  // a(bX) = (ab)X, the unit does nothing, and no two elements do the same.
  template <class Act>
  void expect_action(const Tensor& x, Act&& act) const {
    expect_equal(act(0, x), x);
    std::set<std::vector<double>> images;
    for (int a = 0; a < order_; ++a) {
      images.insert(act(a, x).to_vector());
      for (int b = 0; b < order_; ++b) expect_equal(act(a, act(b, x)), act(group_.mul(a, b), x));
    }
    EXPECT_EQ(images.size(), static_cast<std::size_t>(order_));
  }
};
INSTANTIATE_TEST_SUITE_P(Groups, ImageGroup, testing::Values("c1", "c2", "mirror", "c4", "d4"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(ImageGroup, ObeysTheTableOnImages) {
  for (const int n : {4, 5})
    expect_action(random_tensor({2, 3, n, n}, 1),
                  [&](int g, const Tensor& x) { return act_on_image(group_, g, x); });
}

TEST_P(ImageGroup, ObeysTheTableOnFeatureMaps) {
  expect_action(random_tensor({2, 3, order_, 5, 5}, 2),
                [&](int g, const Tensor& x) { return act_on_feature_map(group_, g, x); });
}

TEST_P(ImageGroup, ObeysTheTableOnTokens) {
  for (const int prefix : {0, 2})
    expect_action(random_tensor({2, prefix + 9, 3 * order_}, 3),
                  [&](int g, const Tensor& x) { return act_on_tokens(group_, g, x, 3, 3, prefix); });
}

TEST_P(ImageGroup, TurnsImagesByItsElements) {
  const Tensor x = random_tensor({2, 5, 5}, 4);
  for (int t = 0; t < order_; ++t) {
    const int element = group_.image_element(t);
    Tensor expected = element >= 4 ? reverse_columns(x) : x;
    for (int turn = 0; turn < element % 4; ++turn) expected = rot90(expected);
    expect_equal(act_on_image(group_, t, x), expected);
  }
}

TEST_P(ImageGroup, MovesPixelsAlike) {
  const int n = 4;
  const Tensor x = random_tensor({n, n}, 5);
  for (int t = 0; t < order_; ++t) {
    const Tensor y = act_on_image(group_, t, x);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        const Pixel p = act_on_pixel(group_, t, {i, j}, n, n);
        EXPECT_EQ(y.at({p.row, p.col}), x.at({i, j}));
        EXPECT_EQ(act_on_pixel(group_, group_.inv(t), p, n, n), (Pixel{i, j}));
      }
    }
  }
}

TEST_P(ImageGroup, FeatureMapsMoveTheIndexToo) {
  const Tensor x = random_tensor({2, order_, 4, 4}, 6);
  for (int g = 0; g < order_; ++g) {
    const Tensor y = act_on_feature_map(group_, g, x);
    for (int t = 0; t < order_; ++t)
      expect_equal(y.select(1, t), act_on_image(group_, g, x.select(1, group_.mul(group_.inv(g), t))));
  }
}

TEST_P(ImageGroup, TokensAgreeWithFeatureMapsAndPrefixesWithVectors) {
  const int n = 3, channels = 2, prefix = 1;
  const Tensor map = random_tensor({2, channels, order_, n, n}, 7);
  const Tensor head = random_tensor({2, prefix, channels * order_}, 8);
  const auto tokens_of = [&](const Tensor& m) {
    return m.permute({0, 3, 4, 1, 2}).reshape({2, n * n, channels * order_});
  };
  Tensor tokens = Tensor::empty({2, prefix + n * n, channels * order_}, DType::f64);
  tokens.slice(1, 0, prefix).copy_(head);
  tokens.slice(1, prefix, prefix + n * n).copy_(tokens_of(map));
  for (int g = 0; g < order_; ++g) {
    const Tensor moved = act_on_tokens(group_, g, tokens, n, n, prefix);
    expect_equal(moved.slice(1, 0, prefix), act_on_index(group_, g, head));
    expect_equal(moved.slice(1, prefix, prefix + n * n), tokens_of(act_on_feature_map(group_, g, map)));
  }
}

TEST_P(ImageGroup, HonoursStrides) {
  const Tensor base = random_tensor({order_, 6, 2, 12}, 9);
  const Tensor sliced = base.slice(3, 1, 12, 2).permute({2, 0, 3, 1});  // [2, T, 6, 6]
  const Tensor expanded = random_tensor({1, 6, 1}, 10).expand({order_, 6, 6});
  ASSERT_FALSE(sliced.is_contiguous());
  for (int g = 0; g < order_; ++g) {
    expect_equal(act_on_feature_map(group_, g, sliced), act_on_feature_map(group_, g, sliced.clone()));
    expect_equal(act_on_image(group_, g, sliced), act_on_image(group_, g, sliced.clone()));
    expect_equal(act_on_feature_map(group_, g, expanded), act_on_feature_map(group_, g, expanded.clone()));
    const Tensor tokens = random_tensor({2, 3 * order_, 9}, 11).transpose(1, 2);
    expect_equal(act_on_tokens(group_, g, tokens, 3, 3), act_on_tokens(group_, g, tokens.clone(), 3, 3));
    expect_equal(act_on_index(group_, g, tokens), act_on_index(group_, g, tokens.clone()));
  }
}

TEST_P(ImageGroup, MovesEveryDataTypeBitForBit) {
  const int n = 4;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::u8}) {
    const std::size_t size = size_of(dtype);
    Tensor x = Tensor::empty({n, n}, dtype);
    auto* bytes = static_cast<std::uint8_t*>(x.raw_mutable_data());
    for (std::size_t i = 0; i < n * n * size; ++i) bytes[i] = static_cast<std::uint8_t>(255 - i);  // NaNs too
    for (int t = 0; t < order_; ++t) {
      const Tensor y = act_on_image(group_, t, x);
      EXPECT_EQ(y.dtype(), dtype);
      const auto* moved = static_cast<const std::uint8_t*>(y.raw_data());
      for (int p = 0; p < n * n; ++p) {
        const Pixel to = act_on_pixel(group_, t, {p / n, p % n}, n, n);
        EXPECT_EQ(std::memcmp(moved + static_cast<std::size_t>(to.row * n + to.col) * size,
                              bytes + static_cast<std::size_t>(p) * size, size),
                  0);
      }
    }
  }
}

TEST_P(ImageGroup, ReturnsNewTensorsAndTakesEmptyOnes) {
  const Tensor x = random_tensor({3, 3}, 12);
  EXPECT_NE(act_on_image(group_, 0, x).storage(), x.storage());
  const int last = order_ - 1;
  EXPECT_EQ(act_on_image(group_, last, Tensor::empty({0, 3, 3})).shape(), (Shape{0, 3, 3}));
  EXPECT_EQ(act_on_image(group_, last, Tensor::empty({2, 0, 0})).shape(), (Shape{2, 0, 0}));
  EXPECT_EQ(act_on_tokens(group_, last, Tensor::empty({2, 4, 0}), 2, 2).shape(), (Shape{2, 4, 0}));
  EXPECT_EQ(act_on_tokens(group_, last, Tensor::ones({2, 1, order_}), 0, 0, 1).shape(),
            (Shape{2, 1, order_}));
  EXPECT_EQ(act_on_index(group_, last, Tensor::empty({0, order_})).shape(), (Shape{0, order_}));
}

TEST(GroupAction, D4PixelMap) {
  const Group& d4 = Group::get("d4");
  const int n = 5, m = n - 1;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const Pixel expected[8] = {{i, j},     {m - j, i}, {m - i, m - j}, {j, m - i},
                                 {i, m - j}, {j, i},     {m - i, j},     {m - j, m - i}};
      for (int t = 0; t < 8; ++t) EXPECT_EQ(act_on_pixel(d4, t, {i, j}, n, n), expected[t]);
    }
  }
}

TEST(GroupAction, RectanglesWhereNoAxisSwaps) {
  const Tensor x = random_tensor({2, 3, 5}, 13);
  for (const std::string_view name : {"c2", "mirror", "c1"}) {
    const Group& group = Group::get(name);
    for (int t = 0; t < group.order(); ++t) {
      const Tensor y = act_on_image(group, t, x);
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 5; ++j) {
          const bool turn = name == "c2" && t == 1, mirror = name == "mirror" && t == 1;
          EXPECT_EQ(y.at({1, turn ? 2 - i : i, turn || mirror ? 4 - j : j}), x.at({1, i, j}));
        }
      }
    }
  }
  const Group& c4 = Group::get("c4");
  expect_equal(act_on_image(c4, 2, x), act_on_image(Group::get("c2"), 1, x));
  EXPECT_EQ(error_of([&] { act_on_image(c4, 1, x); }), "c4 element 1 needs a square grid, not 3x5");
  EXPECT_EQ(error_of([&] {
              act_on_tokens(c4, 3, Tensor::ones({1, 15, 4}), 3, 5);
            }),
            "c4 element 3 needs a square grid, not 3x5");
  EXPECT_EQ(error_of([&] {
              act_on_pixel(Group::get("d4"), 5, {0, 0}, 2, 3);
            }),
            "d4 element 5 needs a square grid, not 2x3");
}

TEST(GroupAction, C8MovesTheIndexOnly) {
  const Group& c8 = Group::get("c8");
  const Tensor x = random_tensor({2, 3, 16}, 14);
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 8; ++b)
      expect_equal(act_on_index(c8, a, act_on_index(c8, b, x)), act_on_index(c8, c8.mul(a, b), x));
    EXPECT_EQ(act_on_index(c8, a, x).at({1, 2, 8 + a}), x.at({1, 2, 8}));
  }
  const std::string refusal = "c8 has no exact image action";
  EXPECT_EQ(error_of([&] { act_on_image(c8, 0, Tensor::ones({4, 4})); }), refusal);
  EXPECT_EQ(error_of([&] { act_on_feature_map(c8, 0, Tensor::ones({8, 4, 4})); }), refusal);
  EXPECT_EQ(error_of([&] { act_on_tokens(c8, 0, Tensor::ones({1, 4, 8}), 2, 2); }), refusal);
  EXPECT_EQ(error_of([&] { act_on_pixel(c8, 0, {0, 0}, 1, 1); }), refusal);
}

TEST(GroupAction, RefusesWhatDoesNotFit) {
  const Group& c4 = Group::get("c4");
  EXPECT_EQ(error_of([&] { act_on_image(c4, 0, Tensor::ones({4})); }),
            "act_on_image takes [..., H, W], not [4]");
  EXPECT_EQ(error_of([&] {
              act_on_feature_map(c4, 0, Tensor::ones({8, 2, 2}));
            }),
            "act_on_feature_map of c4 takes [..., 4, H, W], not [8, 2, 2]");
  EXPECT_EQ(error_of([&] {
              act_on_tokens(c4, 0, Tensor::ones({1, 4, 8}), 2, 2, 1);
            }),
            "act_on_tokens takes [B, 1 + 2x2, C*T], not [1, 4, 8]");
  EXPECT_EQ(error_of([&] {
              act_on_tokens(c4, 0, Tensor::ones({1, 4, 6}), 2, 2);
            }),
            "act_on_tokens: width 6 is not a multiple of 4, the order of c4");
  EXPECT_EQ(error_of([&] {
              act_on_index(c4, 0, Tensor::ones({2, 6}));
            }),
            "act_on_index: width 6 is not a multiple of 4, the order of c4");
  EXPECT_EQ(error_of([&] { act_on_index(c4, 0, Tensor::ones({})); }),
            "act_on_index takes [..., C*T], not a scalar");
  EXPECT_EQ(error_of([&] { act_on_index(c4, 4, Tensor::ones({4})); }),
            "c4 has no element 4: elements are 0 to 3");
  EXPECT_EQ(error_of([&] {
              act_on_image(c4, -1, Tensor::ones({2, 2}));
            }),
            "c4 has no element -1: elements are 0 to 3");
  EXPECT_EQ(error_of([&] { act_on_pixel(c4, 0, {2, 0}, 2, 2); }), "pixel (2, 0) outside 2x2");
}

}  // namespace
}  // namespace gyre
