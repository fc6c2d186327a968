#include "kernels/cpu/flash_kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "core/group.h"

namespace gyre::kernels::cpu {
namespace {

constexpr float poison = std::numeric_limits<float>::quiet_NaN();

/// `count` poisoned floats that end where memory ends, with more poison before them: a read there shows in
/// the results.
class GuardedFloats {
 public:
  explicit GuardedFloats(std::int64_t count) : count_(static_cast<std::size_t>(count)) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (count_ * sizeof(float) / page + 2) * page;
    size_ = bytes + page;
    base_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    auto* end = static_cast<char*>(base_) + bytes;
    if (mprotect(end, page, PROT_NONE) != 0) throw std::bad_alloc();
    data_ = reinterpret_cast<float*>(end) - count_;
    std::fill(static_cast<float*>(base_), data_ + count_, poison);
  }
  ~GuardedFloats() { munmap(base_, size_); }
  GuardedFloats(const GuardedFloats&) = delete;
  GuardedFloats& operator=(const GuardedFloats&) = delete;

  float* data() const { return data_; }
  void clear() const { std::fill_n(data_, count_, 0.0f); }
  void fill() const {
    for (std::size_t i = 0; i < count_; ++i) data_[i] = std::sin(static_cast<float>(i));
  }
  bool written() const {
    return std::none_of(data_, data_ + count_, [](float v) { return std::isnan(v); });
  }
  bool alone_written() const {
    return written() && std::all_of(static_cast<const float*>(base_), static_cast<const float*>(data_),
                                    [](float v) { return std::isnan(v); });
  }

 private:
  std::size_t count_, size_;
  void* base_;
  float* data_;
};

std::vector<float> floats_of(const Matrix& matrix) { return {matrix.values.begin(), matrix.values.end()}; }

/// y = product of x [rows, c, T] with d outputs, from planes `weights`.
FlashProduct product_of(int order, int products, const std::vector<float>& split,
                        const std::vector<float>& merge, std::int64_t c, std::int64_t d,
                        const GuardedFloats& weights, const GuardedFloats& x, const GuardedFloats& y) {
  FlashProduct product;
  product.order = order;
  product.products = products;
  product.split = split.data();
  product.merge = merge.data();
  product.channels_in = c;
  product.channels_out = d;
  product.weights = weights.data();
  product.x = x.data();
  product.y = y.data();
  product.y_stride = d * order;
  return product;
}

class FlashKernels : public testing::TestWithParam<const char*> {};

/// Vectors that channels do not fill: nothing outside x, W, dy, y and dW is read or written.
TEST_P(FlashKernels, StayInsideTheirMemory) {
  const Group& group = Group::get(GetParam());
  const int order = group.order();
  const std::int64_t lanes = flash_lanes();
  for (const BilinearForm* form : {&group.fewest_form(), &group.plain_form()}) {
    const int products = form->products();
    const std::vector<float> input = floats_of(form->input), weight = floats_of(form->weight),
                             output = floats_of(form->output.transposed());
    for (const std::int64_t c : {std::int64_t{1}, lanes - 1, lanes, lanes + 1, 2 * lanes + 3})
      for (const std::int64_t d : {std::int64_t{1}, std::int64_t{3}, lanes, 2 * lanes - 1, 2 * lanes + 5})
        for (const std::int64_t rows : {1, 5, 14}) {
          if (c < 1) continue;
          SCOPED_TRACE(fmt::format("{} rows, {} to {} channels, {} products", rows, c, d, products));
          const GuardedFloats x(rows * c * order), w(d * c * order), dy(rows * d * order), b(d);
          for (const GuardedFloats* from : {&x, &w, &dy, &b}) from->fill();
          const FlashWeights weights{order, products, weight.data(), c, d};
          const GuardedFloats planes(packed_flash_size(products, c, d)),
              turned(packed_flash_size(products, d, c));
          pack_flash_weights(weights, w.data(), false, planes.data());
          pack_flash_weights(weights, w.data(), true, turned.data());

          for (const bool gelu : {false, true}) {
            const GuardedFloats y(rows * d * order), sum(rows * d * order);
            FlashProduct product = product_of(order, products, input, output, c, d, planes, x, y);
            product.bias = b.data();
            product.gelu = gelu;
            product.sum = gelu ? sum.data() : nullptr;
            flash_multiply(product, 0, rows);
            EXPECT_TRUE(y.alone_written());
            EXPECT_EQ(sum.alone_written(), gelu);
          }

          // Two sums, the second with dX from the same packed dy.
          const std::int64_t part = flash_sums_size(products, c, d);
          const GuardedFloats sums(2 * part), dx(rows * c * order), dw(d * c * order), db(d);
          sums.clear();
          const FlashProduct back = product_of(order, products, output, input, d, c, turned, dy, dx);
          const FlashReduction reduction{order, products, input.data(), output.data(), 0,
                                         c,     d,        x.data(),     dy.data(),     d * order};
          flash_reduce(reduction, nullptr, 0, rows, sums.data());
          flash_reduce(reduction, &back, 0, rows, sums.data() + part);
          unpack_flash_sums(weights, sums.data(), 2, part, dw.data(), db.data());
          EXPECT_TRUE(sums.alone_written() && dx.alone_written());
          EXPECT_TRUE(dw.alone_written() && db.alone_written());
        }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FlashKernels, testing::Values("c1", "c2", "mirror", "c4", "c8", "d4"));

}  // namespace
}  // namespace gyre::kernels::cpu
