#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "core/parallel.h"
#include "core/random.h"
#include "core/tensor.h"

namespace gyre {
namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;

// Element by element through at(), which shares no code path with the copy of whole tensors.
std::vector<double> walk(const Tensor& x, int dim = 0, std::int64_t offset = 0) {
  if (dim == 0) offset = 0;
  if (x.numel() == 0) return {};
  if (dim == x.rank()) {
    switch (x.dtype()) {
      case DType::f64: return {x.data<double>()[offset]};
      case DType::f32: return {static_cast<double>(x.data<float>()[offset])};
      case DType::i64: return {static_cast<double>(x.data<std::int64_t>()[offset])};
      default: return {static_cast<double>(x.data<std::uint8_t>()[offset])};
    }
  }
  std::vector<double> values;
  for (std::int64_t i = 0; i < x.size(dim); ++i) {
    const auto part = walk(x, dim + 1, offset + i * x.strides()[dim]);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

class Views {
 public:
  explicit Views(std::uint64_t a) : stream_(7, Purpose::test, a) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(stream_.below(static_cast<std::uint64_t>(high - low + 1)));
  }

  // A view of `shape` whose memory is permuted, sliced and stepped, all of it holding values in 0..250.
  Tensor strided(const Shape& shape, DType dtype) {
    std::vector<int> order(static_cast<std::size_t>(shape.rank()));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(i) - 1))]);
    }
    Shape padded = shape;
    std::vector<std::int64_t> start, step;
    std::vector<int> inverse(order.size());
    for (int i = 0; i < shape.rank(); ++i) {
      const int dim = order[static_cast<std::size_t>(i)];
      inverse[static_cast<std::size_t>(dim)] = i;
      const bool plain = between(0, 1) == 0;
      start.push_back(plain ? 0 : between(0, 2));
      step.push_back(plain ? 1 : between(1, 3));
      padded[i] = start.back() + shape[dim] * step.back();
    }
    Tensor memory = Tensor::empty(padded, DType::f64);
    auto* values = memory.mutable_data<double>();
    for (std::int64_t i = 0; i < memory.numel(); ++i) values[i] = static_cast<double>(between(0, 250));
    Tensor view = memory.to(dtype);
    for (int i = 0; i < shape.rank(); ++i) {
      const auto k = static_cast<std::size_t>(i);
      view = view.slice(i, start[k], padded[i], step[k]);
    }
    return view.permute(inverse);
  }

 private:
  RandomStream stream_;
};

TEST(Copy, AnyViewIntoAnyView) {
  constexpr DType types[] = {DType::f64, DType::f32, DType::i64, DType::u8};
  for (std::uint64_t round = 0; round < 300; ++round) {
    Views views(round);
    Shape shape;
    const auto rank = views.between(0, 5);
    for (int i = 0; i < rank; ++i) shape.push_back(views.between(round % 20 == 0 ? 0 : 1, 5));
    Shape narrow = shape;
    for (int i = 0; i < rank; ++i) {
      if (views.between(0, 3) == 0) narrow[i] = 1;
    }
    const DType from = types[views.between(0, 3)];
    const DType to = views.between(0, 1) == 0 ? from : types[views.between(0, 3)];
    const Tensor source = views.strided(narrow, from);
    Tensor target = views.strided(shape, to);
    const Tensor whole = Tensor::view_of(
        target.storage(), {static_cast<std::int64_t>(target.storage()->bytes() / size_of(to))}, {1}, to);
    const double sum_before = [&] {
      const auto all = walk(whole), mine = walk(target);
      return std::accumulate(all.begin(), all.end(), 0.0) - std::accumulate(mine.begin(), mine.end(), 0.0);
    }();
    target.copy_(source);
    ASSERT_EQ(walk(target), walk(source.expand(shape))) << round;
    const auto all = walk(whole), mine = walk(target);
    ASSERT_EQ(std::accumulate(all.begin(), all.end(), 0.0) - std::accumulate(mine.begin(), mine.end(), 0.0),
              sum_before)
        << "elements outside the view changed in round " << round;
    ASSERT_EQ(source.to_vector(), walk(source));
    ASSERT_EQ(walk(source.clone()), walk(source));
  }
}

// Sizes around the edges of tiles, blocks and tasks.
TEST(Copy, LargeTransposes) {
  const int before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    for (const Shape& shape :
         {Shape{31, 33}, Shape{64, 1030}, Shape{1025, 37}, Shape{2, 40000}, Shape{40000, 3}}) {
      for (const DType dtype : {DType::f64, DType::f32, DType::u8}) {
        const Tensor x = Tensor::arange(shape.numel()).reshape(shape).to(DType::f64).to(dtype);
        const Tensor y = x.transpose(0, 1).contiguous();
        const auto a = x.to_vector(), b = y.to_vector();
        const auto rows = static_cast<std::size_t>(shape[0]), columns = static_cast<std::size_t>(shape[1]);
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t c = 0; c < columns; ++c)
            ASSERT_EQ(b[c * rows + r], a[r * columns + c]) << shape.str();
        }
        Tensor back = Tensor::full(shape, 1, dtype);
        back.copy_(y.transpose(0, 1));
        ASSERT_EQ(back.to_vector(), a);
      }
    }
  }
  set_num_threads(before);
}

TEST(Copy, LargePermutesOfTokensAndImages) {
  for (const auto& [shape, order] : {std::pair{Shape{257, 24, 8}, std::vector<int>{2, 0, 1}},
                                     std::pair{Shape{8, 257, 24}, std::vector<int>{1, 2, 0}},
                                     std::pair{Shape{3, 65, 6, 16}, std::vector<int>{0, 2, 1, 3}},
                                     std::pair{Shape{3, 6, 65, 16}, std::vector<int>{0, 2, 3, 1}},
                                     std::pair{Shape{2, 57, 61, 3}, std::vector<int>{0, 3, 1, 2}}}) {
    const Tensor x = Tensor::arange(shape.numel(), DType::f32).reshape(shape);
    const Tensor y = x.permute(order);
    EXPECT_EQ(walk(y.contiguous()), walk(y)) << shape.str();
    Tensor wide = Tensor::full(y.shape(), -1, DType::f64);
    wide.copy_(y);
    EXPECT_EQ(walk(wide), walk(y)) << shape.str();
  }
}

TEST(Copy, BroadcastsTheSource) {
  Tensor x = Tensor::zeros({2, 3});
  x.copy_(Tensor::from({1.0f, 2.0f, 3.0f}, {3}));
  EXPECT_THAT(x.to_vector(), ElementsAre(1, 2, 3, 1, 2, 3));
  x.copy_(Tensor::from({5.0f, 6.0f}, {2, 1}));
  EXPECT_THAT(x.to_vector(), ElementsAre(5, 5, 5, 6, 6, 6));
  x.copy_(Tensor::from({9.0}, {}));
  EXPECT_THAT(x.to_vector(), ElementsAre(9, 9, 9, 9, 9, 9));
  EXPECT_THAT([&] { x.copy_(Tensor::zeros({2})); },
              ThrowsMessage<ShapeError>("f32[2] cpu does not expand to [2, 3]"));
  EXPECT_THROW(x.copy_(Tensor::zeros({1, 2, 3})), ShapeError);
  Tensor wide = Tensor::zeros({1, 3}).expand({2, 3});
  EXPECT_THAT([&] { wide.copy_(x); },
              ThrowsMessage<ShapeError>("copy_ into an expanded tensor of shape [2, 3]"));
  Tensor empty = Tensor::empty({0, 3});
  empty.copy_(Tensor::zeros({3}));
  EXPECT_EQ(empty.numel(), 0);
}

TEST(Copy, OverlappingViewsBehaveAsIfTheSourceWereCopiedFirst) {
  Tensor x = Tensor::arange(6, DType::f32);
  x.slice(0, 1, 6).copy_(x.slice(0, 0, 5));
  EXPECT_THAT(x.to_vector(), ElementsAre(0, 0, 1, 2, 3, 4));
  Tensor square = Tensor::arange(9, DType::f32).reshape({3, 3});
  square.copy_(square.transpose(0, 1));
  EXPECT_THAT(square.to_vector(), ElementsAre(0, 3, 6, 1, 4, 7, 2, 5, 8));
  square.copy_(square.select(0, 0));
  EXPECT_THAT(square.to_vector(), ElementsAre(0, 3, 6, 0, 3, 6, 0, 3, 6));
  Tensor reversed = Tensor::arange(5, DType::f32);
  reversed.copy_(Tensor::view_of(reversed.storage(), {5}, {-1}, DType::f32, 4));
  EXPECT_THAT(reversed.to_vector(), ElementsAre(4, 3, 2, 1, 0));
  Tensor large = Tensor::arange(70000).reshape({100, 700});
  large.slice(1, 0, 100).copy_(large.slice(1, 0, 100).transpose(0, 1));
  EXPECT_EQ(large.at({3, 90}), 90 * 700 + 3);
  EXPECT_EQ(large.at({90, 3}), 3 * 700 + 90);
  // The same memory read as another type.
  Tensor bytes =
      Tensor::from(std::vector<std::uint8_t>{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}, {16});
  bytes.slice(0, 0, 2).copy_(Tensor::view_of(bytes.storage(), {2}, {1}, DType::i64));
  EXPECT_THAT(bytes.slice(0, 0, 3).to_vector(), ElementsAre(1, 2, 0));
}

TEST(Copy, SelfCopyChangesNothing) {
  Tensor x = Tensor::arange(4, DType::f32);
  x.copy_(x);
  EXPECT_THAT(x.to_vector(), ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace gyre
