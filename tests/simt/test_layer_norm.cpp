#include "kernels/cuda/layer_norm_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

namespace cuda = kernels::cuda;

struct Values {
  std::vector<double> y, mean, rstd, dx, dgain, dbias;
};

/// Forward and backward by the textbook formulas; mean and rstd may be given.
Values reference(const std::vector<double>& x, const std::vector<double>& gain,
                 const std::vector<double>& bias, const std::vector<double>& grad, std::size_t rows,
                 std::size_t repeat, double eps) {
  const std::size_t n = gain.size() * repeat;
  const double count = static_cast<double>(n);
  Values r{x, std::vector<double>(rows),        std::vector<double>(rows),
           x, std::vector<double>(gain.size()), std::vector<double>(gain.size())};
  for (std::size_t i = 0; i < rows; ++i) {
    double mean = 0, variance = 0, sum = 0, dot = 0;
    for (std::size_t j = 0; j < n; ++j) mean += x[i * n + j] / count;
    for (std::size_t j = 0; j < n; ++j) variance += (x[i * n + j] - mean) * (x[i * n + j] - mean) / count;
    const double rstd = 1 / std::sqrt(variance + eps);
    r.mean[i] = mean;
    r.rstd[i] = rstd;
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t at = i * n + j, c = j / repeat;
      const double z = (x[at] - mean) * rstd;
      r.y[at] = z * gain[c] + bias[c];
      r.dgain[c] += grad[at] * z;
      r.dbias[c] += grad[at];
      sum += grad[at] * gain[c] / count;
      dot += grad[at] * gain[c] * z / count;
    }
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t at = i * n + j;
      r.dx[at] = rstd * (grad[at] * gain[j / repeat] - sum - (x[at] - mean) * rstd * dot);
    }
  }
  return r;
}

/// The sums as they are stored: rounded to T.
template <class T>
std::vector<double> sums_of(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> sums;
  for (std::size_t i = 0; i < a.size(); ++i) {
    using C = prim::Wide<T>;
    sums.push_back(static_cast<double>(
        prim::widen(narrowed<T>(static_cast<double>(static_cast<C>(a[i]) + static_cast<C>(b[i]))))));
  }
  return sums;
}

/// Values for an array that is in T or in H.
template <class T, class H>
struct EitherBuffer {
  bool wide;
  Buffer<T> in_wide;
  Buffer<H> in_narrow;

  static EitherBuffer input(bool is_wide, std::int64_t count, std::uint64_t seed, std::size_t offset) {
    return {is_wide, Buffer<T>(normal_values<T>(count, seed), offset),
            Buffer<H>(normal_values<H>(count, seed), offset)};
  }
  static EitherBuffer output(bool is_wide, std::size_t count, std::size_t offset) {
    return {is_wide, Buffer<T>::output(count, offset), Buffer<H>::output(count, offset)};
  }
  cuda::Either<T, H> data() {
    if (wide) return {in_wide.data(), nullptr};
    return {nullptr, in_narrow.data()};
  }
  cuda::Either<const T, const H> constant() {
    const auto [t, h] = data();
    return {t, h};
  }
  std::vector<double> widened_values() const {
    return wide ? widened(in_wide.values()) : widened(in_narrow.values());
  }
  void expect(const std::vector<double>& wanted, double steps) const {
    wide ? expect_close(in_wide.values(), wanted, 1, steps)
         : expect_close(in_narrow.values(), wanted, 1, steps);
  }
};

/// What goes with the norm.
struct Around {
  bool adds = false;                  // r and sum, and what reached the sum elsewhere
  bool wide_r = true, wide_y = true;  // of T, else of H
};

template <class T, class H = T>
void check(std::int64_t rows, std::int64_t channels, int repeat, std::size_t offset = 0, double mean = 0.5,
           const Around& around = {}) {
  using S = prim::Wide<T>;
  SCOPED_TRACE(fmt::format("[{}, {} * {}], offset {}, adds {}, wide r {}, wide y {}", rows, channels, repeat,
                           offset, around.adds, around.wide_r, around.wide_y));
  const std::int64_t n = channels * repeat, elements = rows * n;
  const auto x = normal_values<T>(elements, 1, 2, mean), outer = normal_values<T>(elements, 6);
  const auto gain = normal_values<S>(channels, 3, 1, 1), bias = normal_values<S>(channels, 4);
  const auto count = static_cast<std::size_t>(rows);
  using Both = EitherBuffer<T, H>;
  auto r = Both::input(around.wide_r, elements, 5, offset),
       grad = Both::input(around.wide_y, elements, 2, offset);
  auto y = Both::output(around.wide_y, x.size(), offset);
  Buffer<T> in(x, offset), outers(outer, offset);
  Buffer<S> gains(gain), biases(bias);
  auto sum = Buffer<T>::output(x.size(), offset), dx = Buffer<T>::output(x.size(), offset);
  auto dr = Buffer<H>::output(x.size(), offset);
  auto dgain = Buffer<S>::output(gain.size()), dbias = Buffer<S>::output(gain.size());
  auto means = Buffer<S>::output(count), rstd = Buffer<S>::output(count);
  auto workspace = Buffer<S>::output(static_cast<std::size_t>(cuda::layer_norm_workspace(rows, n)));

  const std::vector<double> normalised =
      around.adds ? sums_of<T>(widened(x), r.widened_values()) : widened(x);
  Values wanted = reference(normalised, widened(gain), widened(bias), grad.widened_values(), count,
                            static_cast<std::size_t>(repeat), 1e-5);
  const double longer = std::max(1.0, std::sqrt(static_cast<double>(n)) / 32);
  const double steps = 32 * std::max(1.0, std::abs(mean)) * longer;
  if (rows > 0) {
    cuda::LayerNormForward<T, H, S> call{};
    call = {in.data(), {},       gains.data(), biases.data(), repeat, S(1e-5),
            nullptr,   y.data(), means.data(), rstd.data(),   rows,   n};
    if (around.adds) {
      call.r = r.constant();
      call.sum = sum.data();
    }
    cuda::launch_layer_norm_forward(call, nullptr);
  }
  y.expect(wanted.y, steps);
  expect_close(means.values(), wanted.mean, 1, 16 * longer);
  expect_close(rstd.values(), wanted.rstd, 1, 16 * longer);
  if (around.adds) {
    EXPECT_EQ(widened(sum.values()), normalised);
    for (std::size_t i = 0; i < x.size(); ++i) wanted.dx[i] += static_cast<double>(prim::widen(outer[i]));
  }

  cuda::LayerNormBackward<T, H, S> back{
      in.data(), gains.data(), means.data(), rstd.data(),  grad.constant(),  nullptr, repeat,
      dx.data(), nullptr,      dgain.data(), dbias.data(), workspace.data(), rows,    n};
  if (around.adds) {
    back.x = sum.data();
    back.outer = outers.data();
    if (!around.wide_r) back.dr = dr.data();
  }
  cuda::launch_layer_norm_backward(back, nullptr);
  expect_close(dx.values(), wanted.dx, 1, steps);
  if (around.adds && !around.wide_r) expect_close(dr.values(), wanted.dx, 1, steps);
  const double sum_steps = steps * std::max(1.0, std::sqrt(static_cast<double>(rows * repeat)));
  expect_close(dgain.values(), wanted.dgain, 1, sum_steps);
  expect_close(dbias.values(), wanted.dbias, 1, sum_steps);
}

TEST(LayerNormKernels, MatchFormulas) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      check<T>(5, 7, 1);      // no packs
      check<T>(3, 16, 4);     // tied over a group
      check<T>(9, 24, 8);     // more rows than warps
      check<T>(2, 10, 3);     // tied over no power of two
      check<T>(3, 32, 1, 1);  // packs off the boundary
      check<T>(1, 1, 1);
      check<T>(0, 8, 1);  // no rows: no gradient
    });
  });
}

TEST(LayerNormKernels, AddAResidual) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      const Around adds{.adds = true};
      check<T>(9, 24, 8, 0, 0.5, adds);
      check<T>(3, 21, 1, 0, 0.5, adds);
      check<T>(3, 32, 1, 1, 0.5, adds);
      check<T>(0, 8, 1, 0, 0.5, adds);
    });
  });
}

template <class H>
void check_beside_f32() {
  in_all_schedules([] {
    for (const bool wide_r : {false, true})
      for (const bool wide_y : {false, true}) {
        const Around around{true, wide_r, wide_y};
        check<float, H>(9, 12, 8, 0, 0.5, around);
        check<float, H>(3, 64, 1, 0, 0.5, around);  // packs of gains
        check<float, H>(4, 13, 1, 0, 0.5, around);  // no packs
        check<float, H>(3, 10, 4, 3, 0.5, around);
      }
    check<float, H>(5, 40, 1, 0, 0.5, {.wide_y = false});
  });
  check<float, H>(3, 300, 8, 0, 0.5, {true, false, false});  // a block for a row
}

TEST(LayerNormKernels, F16BesideF32) { check_beside_f32<prim::half_t>(); }
TEST(LayerNormKernels, Bf16BesideF32) { check_beside_f32<prim::bf16_t>(); }

TEST(LayerNormKernels, WideRows) {
  for_all_types([]<class T>(T) {
    check<T>(3, 1056, 1);  // a block for a row
    check<T>(2, 517, 3);   // without packs
    check<T>(40, 200, 4);  // several blocks of partial sums
    check<T>(2, 1600, 4);  // sums of a row exceed cheap shared memory
    check<T>(300, 8, 1);
    for (const bool adds : {false, true}) check<T>(2, 13000, 1, 0, 0.5, {adds});  // and so does a row
  });
}

TEST(LayerNormKernels, DistantMean) {
  check<float>(4, 64, 1, 0, 1000);
  check<float>(2, 2048, 1, 0, 1000);
}

}  // namespace
}  // namespace gyre::simt
