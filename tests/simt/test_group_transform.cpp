#include "core/group.h"
#include "kernels/cuda/group_transform_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

namespace cuda = kernels::cuda;

cuda::GroupMatrix constants(const Matrix& m) {
  cuda::GroupMatrix result{m.rows, m.cols};
  std::copy(m.values.begin(), m.values.end(), result.values);
  return result;
}

/// Sums of up to 14 terms, each a factor of at most 1 times a value.
constexpr double steps = 64;

template <class T>
void check_to_planes(const Matrix& m, std::int64_t count, std::int64_t gap, std::size_t offset) {
  SCOPED_TRACE(fmt::format("{} elements, gap {}, offset {}", count, gap, offset));
  const auto x = normal_values<T>(count * m.cols, 1);
  const std::vector<double> values = widened(x);
  const std::int64_t plane = count + gap;
  std::vector<double> wanted(static_cast<std::size_t>(m.rows * plane), 7);
  for (int p = 0; p < m.rows; ++p)
    for (std::int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int t = 0; t < m.cols; ++t) sum += m(p, t) * values[static_cast<std::size_t>(i * m.cols + t)];
      wanted[static_cast<std::size_t>(p * plane + i)] = sum;
    }
  Buffer<T> in(x, offset), planes(std::vector<T>(wanted.size(), narrowed<T>(7)), offset);
  cuda::launch_to_planes(constants(m), count, in.data(), plane, planes.data(), nullptr);
  expect_close(planes.values(), wanted, 1, steps);
}

template <class P, class T>
void check_from_planes(const Matrix& m, std::int64_t rows, std::int64_t channels, bool with_bias, bool gelu,
                       std::size_t offset) {
  SCOPED_TRACE(fmt::format("{} x {}, bias {}, gelu {}, offset {}", rows, channels, with_bias, gelu, offset));
  const std::int64_t count = rows * channels, plane = count + 8;
  const auto planes = normal_values<P>(m.cols * plane, 2);
  const auto bias = normal_values<T>(channels, 3);
  const std::vector<double> values = widened(planes), biases = widened(bias);
  std::vector<double> sums, wanted;
  for (std::int64_t i = 0; i < count; ++i)
    for (int t = 0; t < m.rows; ++t) {
      double sum = with_bias ? biases[static_cast<std::size_t>(i % channels)] : 0;
      for (int p = 0; p < m.cols; ++p) sum += m(t, p) * values[static_cast<std::size_t>(p * plane + i)];
      sums.push_back(sum);
      wanted.push_back(gelu ? sum * 0.5 * std::erfc(-sum / std::sqrt(2.0)) : sum);
    }
  Buffer<P> in(planes, offset);
  Buffer<T> added(bias);
  auto y = Buffer<T>::output(wanted.size(), offset), sum = Buffer<T>::output(wanted.size(), offset);
  cuda::launch_from_planes<P, T>(
      constants(m), count, plane, in.data(),
      {y.data(), with_bias ? added.data() : nullptr, channels, gelu, gelu ? sum.data() : nullptr}, nullptr);
  expect_close(y.values(), wanted, 1, steps);
  if (gelu) expect_close(sum.values(), sums, 1, steps);
}

template <class P, class T>
void check_from_all(const BilinearForm& form) {
  check_from_planes<P, T>(form.output, 5, 8, true, false, 0);
  check_from_planes<P, T>(form.output, 3, 5, true, true, 0);
  check_from_planes<P, T>(form.input.transposed(), 2, 16, false, false, 1);
  check_from_planes<P, T>(form.weight.transposed(), 1, 300, false, true, 0);
}

template <class F>
void for_all_forms(F test) {
  for (const auto name : Group::names()) {
    const Group& group = Group::get(name);
    for (const BilinearForm* form : {&group.plain_form(), &group.fewest_form()}) {
      SCOPED_TRACE(fmt::format("{}, {} products", name, form->products()));
      ASSERT_TRUE(cuda::has_group_transform(group.order(), form->products()));
      test(*form);
    }
  }
}

TEST(GroupTransformKernels, MatchTheMatrix) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      for_all_forms([](const BilinearForm& form) {
        for (const Matrix& m : {form.input, form.weight, form.output.transposed()}) {
          check_to_planes<T>(m, 40, 8, 0);
          check_to_planes<T>(m, 13, 0, 0);
          check_to_planes<T>(m, 16, 0, 1);
        }
        check_from_all<T, T>(form);
        if constexpr (sizeof(T) == 2) check_from_all<float, T>(form);
      });
    });
  });
}

TEST(GroupTransformKernels, KnowTheirSizes) {
  EXPECT_FALSE(cuda::has_group_transform(4, 7));
  EXPECT_FALSE(cuda::has_group_transform(3, 3));
}

}  // namespace
}  // namespace gyre::simt
