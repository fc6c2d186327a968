#include "kernels/cuda/blas.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/deterministic.h"
#include "tests/kernels/product_oracle.h"

namespace gyre::kernels::cuda {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const Device gpu = Device::cuda();
constexpr DType floating[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

/// Half the distance of neighbours around 1.
double rounding(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-53;
    case DType::f32: return 0x1p-24;
    case DType::f16: return 0x1p-11;
    default: return 0x1p-8;
  }
}

/// Two factors [batch, rows, cols] on the device in views of any strides, and what their product is made of
/// in f64 from the very values that the device sees.
struct Factors {
  Tensor a, b;
  GemmShape shape;
  std::vector<double> exact, plain;

  Factors(DType dtype, Tensor left, Tensor right) : a(std::move(left)), b(std::move(right)) {
    shape = {.batch = a.size(0), .m = a.size(1), .n = b.size(2), .k = a.size(2)};
    shape.a_batch = a.strides()[0], shape.a_row = a.strides()[1], shape.a_col = a.strides()[2];
    shape.b_batch = b.strides()[0], shape.b_row = b.strides()[1], shape.b_col = b.strides()[2];
    shape.c_batch = shape.m * shape.n, shape.c_row = shape.n;
    const std::vector<double> x = a.to_vector(), y = b.to_vector();
    for (std::int64_t i = 0; i < shape.batch; ++i) {
      const auto left_of = [&](std::int64_t r, std::int64_t l) {
        return x[static_cast<std::size_t>((i * shape.m + r) * shape.k + l)];
      };
      const auto right_of = [&](std::int64_t l, std::int64_t c) {
        return y[static_cast<std::size_t>((i * shape.k + l) * shape.n + c)];
      };
      append(exact, plain_product<long double>(shape.m, shape.n, shape.k, left_of, right_of));
      append(plain, dtype == DType::f64 ? plain_product<double>(shape.m, shape.n, shape.k, left_of, right_of)
                                        : plain_product<float>(shape.m, shape.n, shape.k, left_of, right_of));
    }
  }

  static void append(std::vector<double>& to, const std::vector<double>& values) {
    to.insert(to.end(), values.begin(), values.end());
  }

  void run(DType dtype, Tensor& c, const GemmOptions& options = {}) const {
    gemm(gpu, dtype, shape, a.raw_data(), b.raw_data(), c.raw_mutable_data(), options);
  }
};

Tensor device_random(const Shape& shape, DType dtype, std::uint64_t seed) {
  return random(shape, DType::f64, seed).to(dtype).to(gpu);
}

/// Every element within the sum's own error in f32 and one rounding to the result's type.
void expect_product(const Tensor& c, const std::vector<double>& exact, const std::vector<double>& plain) {
  const double bound = 2 * relative_l2(plain, exact) + 2 * rounding(c.dtype());
  EXPECT_LE(relative_l2(c.to_vector(), exact), bound) << c.str();
}

Tensor poisoned(const Shape& shape, DType dtype) { return Tensor::full(shape, nan, dtype, gpu); }

TEST(CudaGemm, MultipliesRaggedShapes) {
  for (const DType dtype : floating) {
    for (const auto [batch, m, n, k] : {std::array{1, 1, 1, 1},
                                        {1, 7, 5, 3},
                                        {1, 64, 48, 80},
                                        {3, 17, 33, 9},
                                        {2, 1, 40, 64},
                                        {5, 8, 1, 16}}) {
      SCOPED_TRACE(fmt::format("{} {} x {} x {} x {}", dtype, batch, m, n, k));
      const Factors f(dtype, device_random({batch, m, k}, dtype, 1), device_random({batch, k, n}, dtype, 2));
      Tensor c = poisoned({batch, m, n}, dtype);
      f.run(dtype, c);
      expect_product(c, f.exact, f.plain);
    }
  }
}

TEST(CudaGemm, ReadsFactorsOfAnyStride) {
  using View = std::function<Tensor(const Shape&, DType, std::uint64_t)>;
  const std::vector<View> views{
      device_random,
      [](const Shape& s, DType dtype, std::uint64_t seed) {  // transposed
        return device_random({s[0], s[2], s[1]}, dtype, seed).transpose(1, 2);
      },
      [](const Shape& s, DType dtype, std::uint64_t seed) {  // rows apart
        return device_random({s[0], s[1], s[2] + 3}, dtype, seed).slice(2, 2, s[2] + 2);
      },
      [](const Shape& s, DType dtype, std::uint64_t seed) {  // no unit stride
        return device_random({s[0], s[1], 2 * s[2]}, dtype, seed).slice(2, 1, 2 * s[2], 2);
      },
      [](const Shape& s, DType dtype, std::uint64_t seed) {  // heads inside of rows
        return device_random({s[1], s[0], s[2]}, dtype, seed).transpose(0, 1);
      },
      [](const Shape& s, DType dtype, std::uint64_t seed) {  // one matrix for all
        return device_random({1, s[1], s[2]}, dtype, seed).expand(s);
      },
      [](const Shape& s, DType dtype, std::uint64_t seed) {  // one row for all
        return device_random({s[0], 1, s[2]}, dtype, seed).expand(s);
      },
  };
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (std::size_t i = 0; i < views.size(); ++i) {
      for (std::size_t j = 0; j < views.size(); ++j) {
        SCOPED_TRACE(fmt::format("{} views {} and {}", dtype, i, j));
        const Factors f(dtype, views[i]({3, 6, 10}, dtype, 3), views[j]({3, 10, 14}, dtype, 4));
        Tensor c = poisoned({3, 6, 14}, dtype);
        f.run(dtype, c);
        expect_product(c, f.exact, f.plain);
      }
    }
  }
}

TEST(CudaGemm, WritesBetweenForeignElements) {
  for (const DType dtype : floating) {
    Factors f(dtype, device_random({2, 5, 8}, dtype, 5), device_random({2, 8, 6}, dtype, 6));
    Tensor c = poisoned({5, 2, 9}, dtype);  // heads inside of rows, three columns of others
    f.shape.c_batch = 9, f.shape.c_row = 18;
    const Tensor bias = device_random({6}, dtype, 7);
    f.run(dtype, c, {.bias = bias.raw_data(), .activation = GemmActivation::gelu});
    const Tensor result = c.transpose(0, 1).slice(2, 0, 6);
    for (const double value : result.to_vector()) EXPECT_TRUE(std::isfinite(value));
    for (const double value : c.slice(2, 6, 9).to_vector()) EXPECT_TRUE(std::isnan(value));
    Tensor dense = poisoned({2, 5, 6}, dtype);
    f.shape.c_batch = 30, f.shape.c_row = 6;
    f.run(dtype, dense, {.bias = bias.raw_data(), .activation = GemmActivation::gelu});
    expect_product(result, dense.to_vector(), dense.to_vector());
  }
}

TEST(CudaGemm, ScalesAndAccumulates) {
  for (const DType dtype : floating) {
    const Factors f(dtype, device_random({2, 9, 20}, dtype, 8), device_random({2, 20, 11}, dtype, 9));
    Tensor c = device_random({2, 9, 11}, dtype, 10);
    std::vector<double> wanted = c.to_vector(), plain = wanted;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      wanted[i] += 0.25 * f.exact[i];
      plain[i] += 0.25 * f.plain[i];
    }
    f.run(dtype, c, {.alpha = 0.25, .accumulate = true});
    expect_product(c, wanted, plain);
    f.run(dtype, c, {.alpha = -2});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      wanted[i] = -2 * f.exact[i];
      plain[i] = -2 * f.plain[i];
    }
    expect_product(c, wanted, plain);
  }
}

double activated(GemmActivation activation, double x) {
  switch (activation) {
    case GemmActivation::none: return x;
    case GemmActivation::gelu: return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case GemmActivation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return nan;
}

TEST(CudaGemm, AppliesBiasAndActivation) {
  for (const DType dtype : floating) {
    for (const std::int64_t n : {16, 13}) {
      const Factors f(dtype, device_random({1, 12, 24}, dtype, 11), device_random({1, 24, n}, dtype, 12));
      const Tensor bias = device_random({n}, dtype, 13);
      const std::vector<double> add = bias.to_vector();
      for (const GemmActivation activation :
           {GemmActivation::none, GemmActivation::gelu, GemmActivation::gelu_tanh}) {
        for (const bool with_bias : {true, false}) {
          SCOPED_TRACE(fmt::format("{} n {} activation {} bias {}", dtype, n, static_cast<int>(activation),
                                   with_bias));
          std::vector<double> before = f.exact, after = f.exact;
          for (std::size_t i = 0; i < after.size(); ++i) {
            if (with_bias) before[i] += add[i % static_cast<std::size_t>(n)];
            after[i] = activated(activation, before[i]);
          }
          GemmOptions options{.bias = with_bias ? bias.raw_data() : nullptr, .activation = activation};
          Tensor c = poisoned({12, n}, dtype), kept = poisoned({12, n}, dtype);
          f.run(dtype, c, options);
          // A second rounding where the epilogue follows in a kernel of its own.
          const double bound = 2 * relative_l2(f.plain, f.exact) + 4 * rounding(dtype);
          EXPECT_LE(relative_l2(c.to_vector(), after), bound);
          if (activation == GemmActivation::none) continue;
          options.pre_activation = kept.raw_mutable_data();
          Tensor again = poisoned({12, n}, dtype);
          f.run(dtype, again, options);
          EXPECT_LE(relative_l2(again.to_vector(), after), bound);
          EXPECT_LE(relative_l2(kept.to_vector(), before), bound);
        }
      }
    }
  }
}

TEST(CudaGemm, TheTanhFormIsCloseToGelu) {
  for (double x = -6; x < 6; x += 0.01)
    EXPECT_NEAR(activated(GemmActivation::gelu_tanh, x), activated(GemmActivation::gelu, x), 5e-4);
}

TEST(CudaGemm, GivesF32FromHalves) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Factors f(dtype, device_random({2, 9, 300}, dtype, 14), device_random({2, 300, 8}, dtype, 15));
    Tensor c = poisoned({2, 9, 8}, DType::f32);
    f.run(dtype, c, {.f32_result = true});
    expect_product(c, f.exact, f.plain);
    Tensor twice = c.clone();
    f.run(dtype, twice, {.accumulate = true, .f32_result = true});
    std::vector<double> doubled = f.exact, plain = f.plain;
    for (double& value : doubled) value *= 2;
    for (double& value : plain) value *= 2;
    expect_product(twice, doubled, plain);
  }
}

TEST(CudaGemm, EmptySumsGiveZerosOrTheBias) {
  for (const DType dtype : floating) {
    GemmShape shape{.batch = 2, .m = 3, .n = 4, .k = 0, .a_row = 1, .b_row = 4, .c_batch = 12, .c_row = 4};
    Tensor c = poisoned({2, 3, 4}, dtype);
    gemm(gpu, dtype, shape, nullptr, nullptr, c.raw_mutable_data());
    EXPECT_THAT(c.to_vector(), testing::Each(0));
    const Tensor bias = device_random({4}, dtype, 16);
    gemm(gpu, dtype, shape, nullptr, nullptr, c.raw_mutable_data(), {.bias = bias.raw_data()});
    EXPECT_EQ(c.to_vector(), bias.expand({2, 3, 4}).to_vector());
    gemm(gpu, dtype, shape, nullptr, nullptr, c.raw_mutable_data(), {.accumulate = true});
    EXPECT_EQ(c.to_vector(), bias.expand({2, 3, 4}).to_vector());
    shape.m = 0;
    gemm(gpu, dtype, shape, nullptr, nullptr, nullptr);
  }
}

TEST(CudaGemm, Tf32IsOffUnlessAllowed) {
  EXPECT_FALSE(tf32_allowed());
  const DType dtype = DType::f32;
  const Factors f(dtype, device_random({1, 64, 64}, dtype, 17), device_random({1, 64, 64}, dtype, 18));
  Tensor exact = poisoned({64, 64}, dtype), fast = exact.clone();
  f.run(dtype, exact);
  allow_tf32(true);
  f.run(dtype, fast);
  allow_tf32(false);
  expect_product(exact, f.exact, f.plain);
  EXPECT_GT(relative_l2(fast.to_vector(), f.exact), 20 * relative_l2(exact.to_vector(), f.exact));
  EXPECT_LT(relative_l2(fast.to_vector(), f.exact), 0x1p-10);
}

TEST(CudaGemm, RepeatsBitForBit) {
  for (const DType dtype : floating) {
    const Factors f(dtype, device_random({1, 40, 2000}, dtype, 19), device_random({1, 2000, 24}, dtype, 20));
    Tensor first = poisoned({40, 24}, dtype), second = first.clone();
    f.run(dtype, first);
    f.run(dtype, second);
    EXPECT_EQ(first.to_vector(), second.to_vector());
  }
}

TEST(CudaGemm, TimingKernelsLeavesTheResultAlone) {
  set_deterministic(false);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Factors f(dtype, device_random({2, 19, 136}, dtype, 21), device_random({2, 136, 48}, dtype, 22));
    Tensor c = Tensor::ones({2, 19, 48}, dtype, gpu);
    f.run(dtype, c, {.accumulate = true});
    Tensor again = Tensor::ones({2, 19, 48}, dtype, gpu);
    f.run(dtype, again, {.accumulate = true});
    EXPECT_EQ(again.to_vector(), c.to_vector());
    for (double& value : f.exact) ++value;
    for (double& value : f.plain) ++value;
    expect_product(c, f.exact, f.plain);
  }
  set_deterministic(true);
}

TEST(CudaGemm, RefusesWhatItCannotMean) {
  Tensor c = Tensor::zeros({2, 2}, DType::f32, gpu);
  const GemmShape shape{.m = 2, .n = 2, .k = 2, .a_row = 2, .b_row = 2, .c_row = 2};
  const auto run = [&](Device device, DType dtype, const GemmOptions& options, std::int64_t c_row = 2) {
    GemmShape s = shape;
    s.c_row = c_row;
    gemm(device, dtype, s, c.raw_data(), c.raw_data(), c.raw_mutable_data(), options);
  };
  EXPECT_THAT([&] { run(gpu, DType::i64, {}); },
              ThrowsMessage<DTypeError>("gemm takes f64, f32, f16 or bf16, not i64"));
  EXPECT_THAT([&] { run(Device::cpu(), DType::f32, {}); },
              ThrowsMessage<DeviceError>(HasSubstr("memory on cpu")));
  EXPECT_THAT([&] { run(gpu, DType::f32, {.accumulate = true, .bias = c.raw_data()}); },
              ThrowsMessage<Error>(HasSubstr("not both")));
  EXPECT_THAT([&] { run(gpu, DType::f32, {.pre_activation = c.raw_mutable_data()}); },
              ThrowsMessage<Error>(HasSubstr("without an activation")));
  EXPECT_THAT([&] { run(gpu, DType::f32, {}, 1); },
              ThrowsMessage<Error>(HasSubstr("rows of 2 elements, 1 apart")));
  EXPECT_THAT(blas_version(), testing::ContainsRegex("(cuBLASLt|Eigen) [0-9.]+"));
}

}  // namespace
}  // namespace gyre::kernels::cuda
