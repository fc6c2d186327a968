#include <functional>

#include "kernels/cuda/elementwise_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

using kernels::BinaryOp;
using kernels::BroadcastLoop;
using kernels::UnaryOp;
namespace cuda = kernels::cuda;

struct Function {
  UnaryOp op;
  double mean;  // of the inputs
  std::function<double(double)> value;
  std::function<double(double, double)> slope;  // from x and f(x)
  bool saves_result = false;
};

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

std::vector<Function> functions() {
  return {{UnaryOp::neg, 0, [](double x) { return -x; }, [](double, double) { return -1.0; }},
          {UnaryOp::exp, 0, [](double x) { return std::exp(x); }, [](double, double y) { return y; }, true},
          {UnaryOp::log, 9, [](double x) { return std::log(x); }, [](double x, double) { return 1 / x; }},
          {UnaryOp::sqrt, 9, [](double x) { return std::sqrt(x); }, [](double, double y) { return 0.5 / y; },
           true},
          {UnaryOp::tanh, 0, [](double x) { return std::tanh(x); },
           [](double, double y) { return 1 - y * y; }, true},
          {UnaryOp::relu, 0, [](double x) { return x > 0 ? x : 0; },
           [](double x, double) { return x > 0 ? 1.0 : 0.0; }},
          {UnaryOp::gelu, 0, [](double x) { return x * normal_cdf(x); },
           [](double x, double) {
             return normal_cdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846);
           }}};
}

template <class T>
void check_unary(std::int64_t n, std::size_t offset) {
  SCOPED_TRACE(fmt::format("{} elements, offset {}", n, offset));
  for (const Function& f : functions()) {
    SCOPED_TRACE(static_cast<int>(f.op));
    const auto x = normal_values<T>(n, 1, 1, f.mean), grad = normal_values<T>(n, 2);
    std::vector<double> wanted = widened(x), slopes = wanted;
    const std::vector<double> grads = widened(grad);
    for (double& value : wanted) value = f.value(value);
    const auto y = narrowed<T>(wanted);
    const std::vector<double> saved = widened(f.saves_result ? y : x);
    for (std::size_t i = 0; i < slopes.size(); ++i)
      slopes[i] = grads[i] * f.slope(f.saves_result ? 0 : saved[i], saved[i]);
    const std::size_t size = x.size();
    Buffer<T> in(x, offset), grad_in(grad, offset), saved_in(f.saves_result ? y : x, offset);
    auto out = Buffer<T>::output(size, offset), result = Buffer<T>::output(size, offset);
    cuda::launch_unary(f.op, in.data(), out.data(), n, nullptr);
    expect_close(out.values(), wanted);
    cuda::launch_unary_backward(f.op, saved_in.data(), grad_in.data(), result.data(), n, nullptr);
    expect_close(result.values(), slopes);
  }
}

TEST(ElementwiseKernels, UnaryMatchesFormulas) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      for (const std::int64_t n : {1, 7, 64, 1000}) check_unary<T>(n, 0);
      check_unary<T>(300, 1);
    });
  });
}

TEST(ElementwiseKernels, LoopsOverWhatTheGridLeaves) {
  const std::int64_t n = 4096 * 256 * 4 + 4096 * 256 + 3;
  Buffer<float> x(std::vector<float>(static_cast<std::size_t>(n), 3.0F));
  auto y = Buffer<float>::output(x.size());
  cuda::launch_affine(x.data(), 2, -1, y.data(), n, nullptr);
  for (const float value : y.values()) ASSERT_EQ(value, 5.0F);
}

TEST(ElementwiseKernels, ExtremesOfFunctions) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<double> x{-infinity, -200, -10, -0.0, 0, 1e-30, 200, infinity, nan};
  for (const Function& f : functions()) {
    std::vector<double> wanted = x;
    for (double& value : wanted) value = static_cast<float>(f.value(value));
    if (f.op == UnaryOp::gelu) wanted[0] = nan;      // -∞ · 0
    if (f.op == UnaryOp::relu) wanted.back() = nan;  // a NaN stays
    Buffer<float> in(narrowed<float>(x));
    auto out = Buffer<float>::output(x.size());
    cuda::launch_unary(f.op, in.data(), out.data(), static_cast<std::int64_t>(x.size()), nullptr);
    SCOPED_TRACE(static_cast<int>(f.op));
    expect_close(out.values(), wanted);
  }
  // The far tail keeps its relative accuracy.
  Buffer<float> in(std::vector<float>{-9.0F});
  auto out = Buffer<float>::output(1);
  cuda::launch_unary(UnaryOp::gelu, in.data(), out.data(), 1, nullptr);
  EXPECT_NEAR(out.values()[0] / (-9 * normal_cdf(-9)), 1, 1e-5);
}

TEST(ElementwiseKernels, AffineAndAdd) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      for (const std::size_t offset : {0, 1}) {
        const auto x = normal_values<T>(37, 3), sum = normal_values<T>(37, 4);
        std::vector<double> affine = widened(x), added = widened(sum);
        for (std::size_t i = 0; i < affine.size(); ++i) {
          added[i] += 0.75 * affine[i];
          affine[i] = -2.5 * affine[i] + 0.125;
        }
        Buffer<T> in(x, offset), total(sum, offset);
        auto out = Buffer<T>::output(x.size(), offset);
        cuda::launch_affine(in.data(), -2.5, 0.125, out.data(), 37, nullptr);
        expect_close(out.values(), affine);
        cuda::launch_add_into(total.data(), in.data(), 0.75, 37, nullptr);
        expect_close(total.values(), added);
      }
    });
  });
}

double combined(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add: return a + b;
    case BinaryOp::sub: return a - b;
    case BinaryOp::mul: return a * b;
    case BinaryOp::div: return a / b;
  }
  return 0;
}

template <class T>
void check_binary(const BroadcastLoop& loop, std::size_t offset) {
  std::int64_t n = 1, size_a = 1, size_b = 1;
  for (int dim = 0; dim < loop.rank; ++dim) {
    n *= loop.extent[dim];
    size_a += (loop.extent[dim] - 1) * loop.a[dim];
    size_b += (loop.extent[dim] - 1) * loop.b[dim];
  }
  const auto a = normal_values<T>(size_a, 5), b = normal_values<T>(size_b, 6, 0.5, 2);
  const std::vector<double> va = widened(a), vb = widened(b);
  Buffer<T> in_a(a, offset), in_b(b, offset);
  for (const BinaryOp op : {BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::div}) {
    std::vector<double> wanted;
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t rest = i, at_a = 0, at_b = 0;
      for (int dim = loop.rank - 1; dim >= 0; --dim) {
        at_a += rest % loop.extent[dim] * loop.a[dim];
        at_b += rest % loop.extent[dim] * loop.b[dim];
        rest /= loop.extent[dim];
      }
      wanted.push_back(combined(op, va[static_cast<std::size_t>(at_a)], vb[static_cast<std::size_t>(at_b)]));
    }
    auto out = Buffer<T>::output(wanted.size(), offset);
    cuda::launch_binary(op, loop, in_a.data(), in_b.data(), out.data(), nullptr);
    expect_close(out.values(), wanted);
  }
}

TEST(ElementwiseKernels, BinaryBroadcasts) {
  const std::vector<BroadcastLoop> loops{{1, {1}, {0}, {0}},
                                         {1, {33}, {1}, {1}},
                                         {1, {64}, {1}, {0}},
                                         {2, {5, 16}, {16, 1}, {0, 1}},  // a row for all
                                         {2, {5, 16}, {1, 0}, {16, 1}},  // a column for all
                                         {2, {3, 7}, {7, 1}, {0, 1}},    // no packs in rows
                                         {2, {3, 8}, {9, 1}, {0, 1}},    // rows off the boundary
                                         {3, {2, 3, 8}, {8, 0, 1}, {24, 8, 1}},
                                         {4, {2, 3, 2, 8}, {0, 16, 0, 1}, {48, 8, 24, 1}}};
  in_all_schedules([&] {
    for_all_types([&]<class T>(T) {
      for (std::size_t i = 0; i < loops.size(); ++i) {
        SCOPED_TRACE(i);
        check_binary<T>(loops[i], 0);
        check_binary<T>(loops[i], 1);
      }
    });
  });
}

}  // namespace
}  // namespace gyre::simt
