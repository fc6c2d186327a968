#include "kernels/cuda/attention_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

namespace cuda = kernels::cuda;

struct Problem {
  std::int64_t images, length, heads, width, windows = 0;  // 0: neither bias nor mask
};

struct Values {
  std::vector<double> y, logarithms, gradient, bias;
};

/// By the definition; the gradient follows from the given result y.
Values reference(const Problem& s, const std::vector<double>& x, const std::vector<double>& bias,
                 const std::vector<double>& mask, const std::vector<double>& grad) {
  const std::int64_t l = s.length, row = s.heads * s.width;
  const double scale = 1 / std::sqrt(static_cast<double>(s.width));
  Values r{std::vector<double>(static_cast<std::size_t>(s.images * l * row)),
           std::vector<double>(static_cast<std::size_t>(s.images * s.heads * l)),
           std::vector<double>(x.size()), std::vector<double>(bias.size())};
  for (std::int64_t b = 0; b < s.images; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const auto in = [&](std::int64_t i, int part, std::int64_t e) {
        return static_cast<std::size_t>(((b * l + i) * 3 + part) * row + h * s.width + e);
      };
      const auto out = [&](std::int64_t i, std::int64_t e) {
        return static_cast<std::size_t>((b * l + i) * row + h * s.width + e);
      };
      for (std::int64_t i = 0; i < l; ++i) {
        std::vector<double> p(static_cast<std::size_t>(l)), dp = p;
        double sum = 0, dot = 0;
        for (std::int64_t j = 0; j < l; ++j) {
          double score = 0;
          for (std::int64_t e = 0; e < s.width; ++e) score += scale * x[in(i, 0, e)] * x[in(j, 1, e)];
          if (!bias.empty()) score += bias[static_cast<std::size_t>((h * l + i) * l + j)];
          if (!mask.empty()) score += mask[static_cast<std::size_t>((b % s.windows * l + i) * l + j)];
          sum += p[static_cast<std::size_t>(j)] = std::exp(score);
        }
        r.logarithms[static_cast<std::size_t>((b * s.heads + h) * l + i)] = std::log(sum);
        for (std::int64_t j = 0; j < l; ++j) {
          const auto at = static_cast<std::size_t>(j);
          p[at] /= sum;
          for (std::int64_t e = 0; e < s.width; ++e) {
            r.y[out(i, e)] += p[at] * x[in(j, 2, e)];
            dp[at] += grad[out(i, e)] * x[in(j, 2, e)];
            r.gradient[in(j, 2, e)] += p[at] * grad[out(i, e)];
          }
          dot += p[at] * dp[at];
        }
        for (std::int64_t j = 0; j < l; ++j) {
          const double ds = p[static_cast<std::size_t>(j)] * (dp[static_cast<std::size_t>(j)] - dot);
          if (!bias.empty()) r.bias[static_cast<std::size_t>((h * l + i) * l + j)] += ds;
          for (std::int64_t e = 0; e < s.width; ++e) {
            r.gradient[in(i, 0, e)] += scale * ds * x[in(j, 1, e)];
            r.gradient[in(j, 1, e)] += scale * ds * x[in(i, 0, e)];
          }
        }
      }
    }
  return r;
}

/// Zeros and, above the diagonal, some -∞.
template <class T>
std::vector<T> random_mask(std::int64_t windows, std::int64_t length) {
  std::vector<double> values = widened(normal_values<double>(windows * length * length, 5));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i) % (length * length);
    const bool hidden = values[i] > 0.3 && place % length > place / length;
    values[i] = hidden ? -std::numeric_limits<double>::infinity() : 0;
  }
  return narrowed<T>(values);
}

template <class T>
void check(const Problem& s, std::size_t offset = 0) {
  using S = prim::Wide<T>;
  SCOPED_TRACE(fmt::format("[{}, {}, 3, {}, {}], {} windows, offset {}", s.images, s.length, s.heads, s.width,
                           s.windows, offset));
  const std::int64_t tokens = s.images * s.length, area = s.length * s.length;
  const bool windows = s.windows > 0;
  const auto qkv = normal_values<T>(tokens * 3 * s.heads * s.width, 1),
             grad = normal_values<T>(tokens * s.heads * s.width, 2);
  const auto bias = normal_values<S>(windows ? s.heads * area : 0, 3);
  const auto mask = random_mask<S>(s.windows, s.length);
  const Values wanted = reference(s, widened(qkv), widened(bias), widened(mask), widened(grad));

  Buffer<T> in(qkv, offset), grads(grad, offset);
  Buffer<S> biases(bias), masks(mask);
  auto y = Buffer<T>::output(grad.size(), offset), result = Buffer<T>::output(qkv.size(), offset);
  auto logarithms = Buffer<S>::output(wanted.logarithms.size());
  auto workspace = Buffer<S>::output(
      static_cast<std::size_t>(cuda::attention_workspace(s.images, s.length, s.heads, windows)));
  auto bias_gradient = Buffer<S>::output(bias.size());
  const cuda::AttentionInput<T, S> input{s.images,
                                         s.length,
                                         s.heads,
                                         s.width,
                                         in.data(),
                                         windows ? biases.data() : nullptr,
                                         windows ? masks.data() : nullptr,
                                         windows ? s.windows : 1};
  cuda::launch_attention_forward(input, y.data(), logarithms.data(), nullptr);
  expect_close(y.values(), wanted.y, 1, 64);
  expect_close(logarithms.values(), wanted.logarithms, 0, 64);
  cuda::launch_attention_backward<T, S>(
      input,
      {y.data(), logarithms.data(), grads.data(), result.data(), windows ? bias_gradient.data() : nullptr},
      workspace.data(), nullptr);
  // y enters rounded.
  expect_close(result.values(), wanted.gradient, 3, 256);
  if (windows) expect_close(bias_gradient.values(), wanted.bias, 3 * rounding<T>() / rounding<S>(), 256);
}

TEST(AttentionKernels, MatchLoops) {
  in_all_schedules([] {
    check<float>({1, 1, 1, 1});
    check<float>({2, 5, 2, 4});
    check<float>({1, 70, 1, 32});
    check<double>({1, 37, 2, 16});
  });
  for_all_types([]<class T>(T) {
    for (const std::int64_t width : {1, 5, 16, 17, 40, 64, 72, 128}) check<T>({1, 19, 2, width});
    if (sizeof(T) < 8) check<T>({1, 19, 1, 136}), check<T>({1, 7, 1, 256});
    for (const std::int64_t length : {16, 17, 33, 64, 65, 129}) check<T>({1, length, 1, 8});
    check<T>({2, 9, 3, 8}, 1);  // packs off the boundary
  });
}

TEST(AttentionKernels, WindowsMatchLoops) {
  in_all_schedules([] {
    check<float>({4, 9, 2, 8, 2});
    check<double>({2, 35, 1, 4, 1});
  });
  for_all_types([]<class T>(T) {
    check<T>({6, 16, 2, 4, 3});
    check<T>({12, 49, 1, 16, 4});
    check<T>({1, 66, 2, 5, 1});
  });
}

TEST(AttentionKernels, HiddenKeysDoNotMatter) {
  // The first 70 keys hidden: a whole tile of them stands before the first that counts.
  const std::int64_t length = 75, width = 4;
  auto values = normal_values<float>(length * 3 * width, 7);
  std::vector<float> mask(static_cast<std::size_t>(length * length));
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (static_cast<std::int64_t>(i) % length < 70) mask[i] = -std::numeric_limits<float>::infinity();
  Buffer<float> masks(mask);
  std::vector<std::vector<float>> results;
  for (const float hidden : {1.0F, 1e4F}) {
    for (std::int64_t i = 0; i < 70; ++i)
      for (std::int64_t e = width; e < 3 * width; ++e)
        values[static_cast<std::size_t>(i * 3 * width + e)] = hidden;
    Buffer<float> in(values);
    auto y = Buffer<float>::output(static_cast<std::size_t>(length * width));
    cuda::launch_attention_forward<float, float>({1, length, 1, width, in.data(), nullptr, masks.data()},
                                                 y.data(), nullptr, nullptr);
    results.push_back(y.values());
  }
  EXPECT_EQ(results[0], results[1]);
  for (const float value : results[0]) ASSERT_TRUE(std::isfinite(value));
}

TEST(AttentionKernels, LargeScoresStayFinite) {
  Buffer<float> in(normal_values<float>(20 * 3 * 8, 8, 100));
  auto y = Buffer<float>::output(160);
  cuda::launch_attention_forward<float, float>({1, 20, 1, 8, in.data()}, y.data(), nullptr, nullptr);
  for (const float value : y.values()) ASSERT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace gyre::simt
