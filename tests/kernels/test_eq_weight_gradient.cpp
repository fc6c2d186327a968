#include "kernels/cpu/eq_weight_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/parallel.h"
#include "core/random.h"

namespace gyre::kernels {
namespace {

/// dW[d,c,r] = Σ_n Σ_t dy[n,d,t]·x[n,c,t·r] in f64.
std::vector<double> oracle(const Group& group, const Tensor& x, const Tensor& dy) {
  const std::int64_t rows = x.size(0), c_count = x.size(1), d_count = dy.size(1), order = group.order();
  std::vector<double> dw(static_cast<std::size_t>(d_count * c_count * order));
  const float *from_x = x.data<float>(), *from_dy = dy.data<float>();
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t d = 0; d < d_count; ++d)
      for (std::int64_t c = 0; c < c_count; ++c)
        for (int t = 0; t < order; ++t)
          for (int r = 0; r < order; ++r)
            dw[static_cast<std::size_t>((d * c_count + c) * order + r)] +=
                static_cast<double>(from_dy[(n * d_count + d) * order + t]) *
                from_x[(n * c_count + c) * order + group.mul(t, r)];
  return dw;
}

struct Sizes {
  std::int64_t rows, channels_in, channels_out;
};

class EqWeightGradient : public testing::TestWithParam<std::string> {};

TEST_P(EqWeightGradient, EqualsTheDefinition) {
  const Group& group = Group::get(GetParam());
  RandomStream stream(23, Purpose::test);
  // Rows in registers, in one block and in several; columns that fill a vector, a panel, and neither; hardly
  // any input channels; more tasks than threads.
  for (const Sizes& sizes :
       {Sizes{0, 3, 4}, Sizes{1, 1, 1}, Sizes{1, 17, 29}, Sizes{1, 3, 200}, Sizes{2, 8, 13}, Sizes{2, 70, 2},
        Sizes{3, 5, 7}, Sizes{9, 1, 130}, Sizes{40, 33, 50}, Sizes{255, 2, 11}, Sizes{257, 16, 3},
        Sizes{700, 5, 4}, Sizes{70, 61, 90}}) {
    const Tensor x = random_normal({sizes.rows, sizes.channels_in, group.order()}, 1, stream),
                 dy = random_normal({sizes.rows, sizes.channels_out, group.order()}, 1, stream);
    // The memory that the result takes next.
    {
      Tensor poison = Tensor::empty({sizes.channels_out, sizes.channels_in, group.order()});
      poison.fill_(std::numeric_limits<double>::quiet_NaN());
    }
    const auto dw = cpu::eq_weight_gradient(group, x, dy).to_vector(), right = oracle(group, x, dy);
    ASSERT_EQ(dw.size(), right.size());
    const double bound = 1e-5 * std::sqrt(static_cast<double>(sizes.rows * group.order()) + 1);
    for (std::size_t i = 0; i < dw.size(); ++i)
      ASSERT_NEAR(dw[i], right[i], bound) << sizes.rows << " rows, " << sizes.channels_in << " to "
                                          << sizes.channels_out << " channels, element " << i;
  }
}

TEST_P(EqWeightGradient, DoesNotDependOnThreads) {
  const Group& group = Group::get(GetParam());
  RandomStream stream(24, Purpose::test);
  const Tensor x = random_normal({300, 40, group.order()}, 1, stream),
               dy = random_normal({300, 70, group.order()}, 1, stream);
  const int threads = num_threads();
  set_num_threads(1);
  const auto alone = cpu::eq_weight_gradient(group, x, dy).to_vector();
  set_num_threads(3);
  const auto shared = cpu::eq_weight_gradient(group, x, dy).to_vector();
  set_num_threads(threads);
  EXPECT_EQ(alone, shared);
}

INSTANTIATE_TEST_SUITE_P(Groups, EqWeightGradient, testing::Values("c1", "c2", "mirror", "c4", "c8", "d4"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace gyre::kernels
