#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "core/random.h"
#include "kernels/cpu/flash_kernels.h"
#include "kernels/cpu/gemm_f32.h"
#include "kernels/eq_linear.h"

namespace gyre::kernels {
namespace {

/// The definition, term by term, in f64: Y[n,d,t] = Σ_c Σ_s X[n,c,s] W[d,c,t⁻¹s] + b[d].
struct Oracle {
  const Group& group;
  Tensor x, w, b, dy;  // f64

  /// Calls f(index in x, index in w, index in y) for every term of the sum.
  template <class F>
  void for_each_term(F&& f) const {
    const std::int64_t n_count = x.size(0), c_count = x.size(1), d_count = w.size(0);
    const int order = group.order();
    for (int t = 0; t < order; ++t)
      for (int s = 0; s < order; ++s) {
        const int r = group.mul(group.inv(t), s);
        for (std::int64_t n = 0; n < n_count; ++n)
          for (std::int64_t d = 0; d < d_count; ++d)
            for (std::int64_t c = 0; c < c_count; ++c)
              f((n * c_count + c) * order + s, (d * c_count + c) * order + r, (n * d_count + d) * order + t);
      }
  }

  Tensor y() const {
    const std::int64_t d_count = w.size(0), order = group.order();
    Tensor out = Tensor::zeros({x.size(0), d_count, order}, DType::f64);
    double* to = out.mutable_data<double>();
    if (b.defined())
      for (std::int64_t i = 0; i < out.numel(); ++i) to[i] = b.data<double>()[i / order % d_count];
    const Tensor dense_x = x.contiguous(), dense_w = w.contiguous();
    const double *from_x = dense_x.data<double>(), *from_w = dense_w.data<double>();
    for_each_term([&](std::int64_t i, std::int64_t j, std::int64_t k) { to[k] += from_x[i] * from_w[j]; });
    return out;
  }

  LinearGrads grads() const {
    const std::int64_t d_count = w.size(0), order = group.order();
    LinearGrads out{Tensor::zeros(x.shape(), DType::f64), Tensor::zeros(w.shape(), DType::f64),
                    Tensor::zeros({d_count}, DType::f64)};
    double *dx = out.x.mutable_data<double>(), *dw = out.w.mutable_data<double>(),
           *db = out.b.mutable_data<double>();
    const Tensor dense_x = x.contiguous(), dense_w = w.contiguous(), dense_dy = dy.contiguous();
    const double *from_x = dense_x.data<double>(), *from_w = dense_w.data<double>(),
                 *g = dense_dy.data<double>();
    for_each_term([&](std::int64_t i, std::int64_t j, std::int64_t k) {
      dx[i] += g[k] * from_w[j];
      dw[j] += g[k] * from_x[i];
    });
    for (std::int64_t i = 0; i < dense_dy.numel(); ++i) db[i / order % d_count] += g[i];
    return out;
  }
};

Oracle random_case(const Group& group, std::int64_t n, std::int64_t c, std::int64_t d, bool bias,
                   std::uint64_t address) {
  RandomStream stream(17, Purpose::test, address);
  const int order = group.order();
  return {group, random_normal({n, c, order}, 1, stream, DType::f64),
          random_normal({d, c, order}, 1, stream, DType::f64),
          bias ? random_normal({d}, 1, stream, DType::f64) : Tensor(),
          random_normal({n, d, order}, 1, stream, DType::f64)};
}

double rel_l2(const Tensor& out, const Tensor& reference) {
  EXPECT_EQ(out.shape(), reference.shape());
  const auto a = out.to_vector(), b = reference.to_vector();
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::isfinite(error) ? std::sqrt(error / std::max(norm, 1e-300))
                              : std::numeric_limits<double>::infinity();
}

/// Frees a NaN-filled block for the outputs to land in.
void poison(std::int64_t count) {
  Tensor block =
      Tensor::full({std::max<std::int64_t>(1, count)}, std::numeric_limits<double>::quiet_NaN(), DType::f64);
}

Tensor as(const Tensor& x, DType dtype) { return x.defined() ? x.to(dtype) : x; }

void check(const Oracle& oracle, const Tensor& y, const LinearGrads& expected, const EqLinearOptions& options,
           DType dtype, double bound) {
  const Tensor x = as(oracle.x, dtype), w = as(oracle.w, dtype), b = as(oracle.b, dtype),
               dy = as(oracle.dy, dtype);
  const std::string what =
      fmt::format("{} {} {} products, {} x {} w {}", oracle.group.name(), name_of(options.backend),
                  options.products, dtype, x.shape().str(), w.shape().str());
  EqPlanes cache;
  poison(oracle.dy.numel());
  EXPECT_LE(rel_l2(eq_linear_forward(oracle.group, x, w, b, options, &cache), y), bound) << what;
  poison(oracle.x.numel());
  const LinearGrads grads = eq_linear_backward(oracle.group, x, w, dy, true, true, true, options, &cache);
  EXPECT_LE(rel_l2(grads.x, expected.x), bound) << what;
  EXPECT_LE(rel_l2(grads.w, expected.w), bound) << what;
  EXPECT_LE(rel_l2(grads.b, expected.b), bound) << what;
}

/// Rows, channels in, channels out: ragged against every tile size.
constexpr std::int64_t sizes[][3] = {{1, 1, 1},    {2, 3, 5},    {7, 16, 16},  {13, 4, 33},
                                     {24, 17, 15}, {37, 32, 1},  {5, 65, 31},  {3, 300, 20},
                                     {70, 20, 70}, {129, 8, 48}, {200, 9, 23}, {60, 20, 70}};

constexpr EqBackend every_backend[] = {EqBackend::fused, EqBackend::packed, EqBackend::naive};

class EqLinearGroups : public testing::TestWithParam<std::string_view> {};

TEST_P(EqLinearGroups, EveryFormEqualsTheDenseDefinition) {
  const Group& group = Group::get(GetParam());
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    const auto [n, c, d] = sizes[i];
    const Oracle oracle = random_case(group, n, c, d, i % 3 != 2, i);
    const Tensor y = oracle.y();
    const LinearGrads grads = oracle.grads();
    for (const int threads : {1, 2}) {
      set_num_threads(threads);
      for (const int products : {group.fewest_form().products(), group.plain_form().products()}) {
        check(oracle, y, grads, {EqBackend::packed, products}, DType::f64, 1e-12);
        check(oracle, y, grads, {EqBackend::packed, products}, DType::f32, 3e-6);
        check(oracle, y, grads, {EqBackend::fused, products}, DType::f32, 3e-6);
      }
      check(oracle, y, grads, {EqBackend::naive}, DType::f64, 1e-12);
      check(oracle, y, grads, {EqBackend::naive}, DType::f32, 2e-6);
      check(oracle, y, grads, {}, DType::f32, 3e-6);
    }
  }
}

TEST_P(EqLinearGroups, StridedInputsAreHonoured) {
  const Group& group = Group::get(GetParam());
  const Oracle o = random_case(group, 12, 6, 7, true, 99);
  const EqLinearOptions flash{EqBackend::flash};
  RandomStream stream(3, Purpose::test);
  const Tensor wide = random_normal({24, 6, group.order()}, 1, stream, DType::f64);
  const Tensor sliced = wide.slice(0, 0, 24, 2);
  const Tensor turned = random_normal({group.order(), 6, 12}, 1, stream, DType::f64).permute({2, 1, 0});
  const Tensor expanded =
      random_normal({1, 6, group.order()}, 1, stream, DType::f64).expand({12, 6, group.order()});
  const Tensor w = random_normal({6, 7, group.order()}, 1, stream, DType::f64).transpose(0, 1);
  const Tensor dy = random_normal({7, 12, group.order()}, 1, stream, DType::f64).transpose(0, 1);
  for (const Tensor& x : {sliced, turned, expanded}) {
    const Oracle oracle{group, x, w, o.b, dy};
    EXPECT_LE(rel_l2(eq_linear_forward(group, x, w, o.b, flash), oracle.y()), 1e-12);
    const LinearGrads grads = eq_linear_backward(group, x, w, dy, true, true, true, flash),
                      expected = oracle.grads();
    EXPECT_LE(rel_l2(grads.x, expected.x), 1e-12);
    EXPECT_LE(rel_l2(grads.w, expected.w), 1e-12);
    EXPECT_LE(rel_l2(grads.b, expected.b), 1e-12);
  }
}

TEST_P(EqLinearGroups, ExpandedMatrixAndFoldAreAdjoint) {
  const Group& group = Group::get(GetParam());
  RandomStream stream(5, Purpose::test);
  const int order = group.order();
  const Tensor w = random_normal({3, 5, order}, 1, stream, DType::f64);
  const Tensor m = random_normal({3 * order, 5 * order}, 1, stream, DType::f64);
  const auto a = expand_eq_weight(group, w).to_vector(), b = m.to_vector();
  const auto c = w.to_vector(), d = fold_eq_weight(group, m, 3, 5).to_vector();
  double left = 0, right = 0;
  for (std::size_t i = 0; i < a.size(); ++i) left += a[i] * b[i];
  for (std::size_t i = 0; i < c.size(); ++i) right += c[i] * d[i];
  EXPECT_NEAR(left, right, 1e-11 * std::abs(left) + 1e-12);
}

/// Against x·Φ(x) of the definition, with and without the values before it, for output channels that fill
/// hardly a vector, and most of several.
TEST_P(EqLinearGroups, GeluFollowsTheBias) {
  const Group& group = Group::get(GetParam());
  for (const std::int64_t channels : {5, 19, 60}) {
    SCOPED_TRACE(channels);
    const Oracle oracle = random_case(group, 13, 5, channels, true, 7);
    const Tensor h = oracle.y();
    std::vector<double> expected = h.to_vector();
    for (double& v : expected) v *= 0.5 * std::erfc(-v / std::sqrt(2.0));
    const Tensor y = Tensor::from(expected, h.shape());
    for (const EqBackend backend : every_backend) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        const double bound = dtype == DType::f32 ? 3e-6 : 1e-12;
        const Tensor x = as(oracle.x, dtype), w = as(oracle.w, dtype), b = as(oracle.b, dtype);
        Tensor before;
        poison(2 * y.numel());
        const Tensor with = eq_linear_forward(group, x, w, b, {backend}, nullptr, Activation::gelu, &before);
        poison(2 * y.numel());
        const Tensor without = eq_linear_forward(group, x, w, b, {backend}, nullptr, Activation::gelu);
        EXPECT_LE(rel_l2(with, y), bound) << name_of(backend);
        EXPECT_LE(rel_l2(before, h), bound) << name_of(backend);
        EXPECT_EQ(without.to_vector(), with.to_vector()) << name_of(backend);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EqLinearGroups, testing::Values("c1", "c2", "mirror", "c4", "c8", "d4"),
                         [](const auto& test) { return std::string(test.param); });

TEST(EqLinear, HandCheckedExample) {
  const Group& c4 = Group::get("c4");
  for (const DType dtype : {DType::f32, DType::f64})
    for (const EqBackend backend : {EqBackend::flash, EqBackend::naive}) {
      const Tensor w = Tensor::from<double>({1, 2, 3, 4}, {1, 1, 4}).to(dtype);
      const Tensor x = Tensor::from<double>({5, 6, 7, 8}, {1, 1, 4}).to(dtype);
      const auto y = eq_linear_forward(c4, x, w, {}, {backend}).to_vector();
      EXPECT_EQ(y, (std::vector<double>{70, 64, 62, 64}));
    }
}

TEST(EqLinear, BiasGradientOfManyRowsKeepsItsDigits) {
  const Group& c4 = Group::get("c4");
  RandomStream stream(4, Purpose::test);
  const Tensor x = Tensor::zeros({40000, 2, 4}), w = Tensor::ones({3, 2, 4});
  const Tensor dy = random_uniform({40000, 3, 4}, 0.5, 1.5, stream);
  const Tensor exact =
      eq_linear_backward(c4, x.to(DType::f64), w.to(DType::f64), dy.to(DType::f64), false, false, true).b;
  for (const EqBackend backend : every_backend)
    for (const bool with_dx : {false, true})
      EXPECT_LE(rel_l2(eq_linear_backward(c4, x, w, dy, with_dx, true, true, {backend}).b, exact), 3e-7)
          << name_of(backend) << with_dx;
}

TEST(EqLinear, EmptyBatch) {
  const Group& c4 = Group::get("c4");
  const Tensor w = Tensor::ones({3, 2, 4});
  for (const EqBackend backend : every_backend) {
    const Tensor x = Tensor::zeros({0, 2, 4});
    EXPECT_EQ(eq_linear_forward(c4, x, w, {}, {backend}).shape(), (Shape{0, 3, 4}));
    const LinearGrads grads =
        eq_linear_backward(c4, x, w, Tensor::zeros({0, 3, 4}), true, true, true, {backend});
    EXPECT_EQ(grads.x.shape(), (Shape{0, 2, 4}));
    EXPECT_EQ(grads.w.to_vector(), std::vector<double>(24, 0.0));
    EXPECT_EQ(grads.b.to_vector(), std::vector<double>(3, 0.0));
  }
}

TEST(EqLinear, NoChannels) {
  const Group& c4 = Group::get("c4");
  const Tensor bias = Tensor::from<float>({1, 2, 3}, {3});
  for (const EqBackend backend : every_backend) {
    const Tensor x = Tensor::zeros({2, 0, 4}), w = Tensor::zeros({3, 0, 4}), dy = Tensor::ones({2, 3, 4});
    const Tensor y = eq_linear_forward(c4, x, w, bias, {backend});
    EXPECT_EQ(y.shape(), (Shape{2, 3, 4}));
    EXPECT_EQ(y.at({1, 2, 3}), 3);
    const LinearGrads grads = eq_linear_backward(c4, x, w, dy, true, true, true, {backend});
    EXPECT_EQ(grads.x.shape(), x.shape());
    EXPECT_EQ(grads.w.shape(), w.shape());
    EXPECT_EQ(grads.b.to_vector(), std::vector<double>(3, 8.0));
    const LinearGrads none = eq_linear_backward(c4, Tensor::ones({2, 3, 4}), Tensor::zeros({0, 3, 4}),
                                                Tensor::zeros({2, 0, 4}), true, true, true, {backend});
    EXPECT_EQ(none.x.to_vector(), std::vector<double>(24, 0.0));
  }
}

TEST(EqLinear, PlanesBelongToGroupAndShape) {
  const Group &c8 = Group::get("c8"), &d4 = Group::get("d4");
  RandomStream stream(8, Purpose::test);
  const Tensor x = random_normal({5, 2, 8}, 1, stream), w = random_normal({3, 2, 8}, 1, stream);
  for (const EqBackend backend : every_backend) {
    EqPlanes cache;
    eq_linear_forward(c8, x, w, {}, {backend}, &cache);
    EXPECT_EQ(eq_linear_forward(d4, x, w, {}, {backend}, &cache).to_vector(),
              eq_linear_forward(d4, x, w, {}, {backend}).to_vector());
    const Tensor y = random_normal({5, 3, 8}, 1, stream), turned = w.reshape({2, 3, 8});
    EXPECT_EQ(eq_linear_forward(d4, y, turned, {}, {backend}, &cache).to_vector(),
              eq_linear_forward(d4, y, turned, {}, {backend}).to_vector());
  }
}

TEST(EqLinear, PlanesAreRebuiltOncePerVersion) {
  const Group& c4 = Group::get("c4");
  RandomStream stream(7, Purpose::test);
  Tensor w = random_normal({4, 4, 4}, 1, stream);
  const Tensor x = random_normal({9, 4, 4}, 1, stream), dy = random_normal({9, 4, 4}, 1, stream);
  for (const EqBackend backend : every_backend) {
    EqPlanes cache;
    const auto step = [&] {
      eq_linear_forward(c4, x, w, {}, {backend}, &cache);
      eq_linear_backward(c4, x, w, dy, true, true, true, {backend}, &cache);
    };
    step();
    step();
    EXPECT_EQ(cache.rebuilds(), 1);
    w.mutable_data<float>()[3] += 1;  // a direct write
    step();
    EXPECT_EQ(cache.rebuilds(), 2);
    w = w.clone();  // another storage
    step();
    EXPECT_EQ(cache.rebuilds(), 3);
    cache.clear();
    step();
    EXPECT_EQ(cache.rebuilds(), 4);
  }
}

TEST(EqLinear, SameThreadsSameBits) {
  const Oracle o = random_case(Group::get("c4"), 200, 20, 36, true, 1);
  set_num_threads(2);
  const Tensor x = o.x.to(DType::f32), w = o.w.to(DType::f32), dy = o.dy.to(DType::f32);
  for (const EqBackend backend : every_backend) {
    const LinearGrads first = eq_linear_backward(o.group, x, w, dy, true, true, true, {backend});
    for (int i = 0; i < 5; ++i) {
      const LinearGrads again = eq_linear_backward(o.group, x, w, dy, true, true, true, {backend});
      EXPECT_EQ(first.w.to_vector(), again.w.to_vector());
      EXPECT_EQ(first.x.to_vector(), again.x.to_vector());
      EXPECT_EQ(first.b.to_vector(), again.b.to_vector());
    }
  }
}

/// Long sums: no more error than twice the dense layer's.
TEST(EqLinear, LongSumsKeepTheirDigits) {
  const Oracle o = random_case(Group::get("c4"), 6, 1100, 8, false, 2);
  const Tensor x = o.x.to(DType::f32), w = o.w.to(DType::f32);
  const Tensor y = o.y();
  const double naive = rel_l2(eq_linear_forward(o.group, x, w, {}, {EqBackend::naive}), y);
  EXPECT_GT(naive, 0);
  for (const EqBackend backend : {EqBackend::fused, EqBackend::packed})
    EXPECT_LE(rel_l2(eq_linear_forward(o.group, x, w, {}, {backend}), y), 2 * std::max(naive, 2e-7));
}

/// Fused Y, and dX of the layer the other way round, against f64: both products take C channels to D.
void check_fused(const char* name, std::int64_t rows, std::int64_t c, std::int64_t d, std::uint64_t seed) {
  const Group& group = Group::get(name);
  const Oracle o = random_case(group, rows, c, d, true, seed);
  const EqLinearOptions exact{EqBackend::packed}, fused{EqBackend::fused};
  const Tensor y = eq_linear_forward(group, o.x, o.w, o.b, exact);
  const Tensor x = o.x.to(DType::f32), w = o.w.to(DType::f32), b = o.b.to(DType::f32);
  poison(y.numel());
  EXPECT_LE(rel_l2(eq_linear_forward(group, x, w, b, fused), y), 1e-6) << name << " " << d;
  const Tensor turned = random_case(group, rows, d, c, true, seed + 1).w;
  const Tensor dx = eq_linear_backward(group, o.dy, turned, o.x, true, false, false, exact).x;
  poison(dx.numel());
  EXPECT_LE(rel_l2(eq_linear_backward(group, o.dy.to(DType::f32), turned.to(DType::f32), x, true, false,
                                      false, fused)
                       .x,
                   dx),
            1e-6)
      << name << " " << d;
}

/// One panel of outputs, merged at once: sums over several passes, several tiles of rows, the last not full.
TEST(EqLinear, OnePanelOfManyChannels) {
  for (const char* name : {"c2", "c4"})
    for (const std::int64_t few : {8, 29}) check_fused(name, 43, 1100, few, 5);
}

/// So many channels that neither the planes of the rows nor all results stay in the caches.
TEST(EqLinear, ManyChannelsAreDoneInParts) {
  for (const char* name : {"c2", "c4"}) check_fused(name, 13, 1100, 450, 3);
}

template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

TEST(EqLinear, Refusals) {
  const Group& c4 = Group::get("c4");
  const Tensor x = Tensor::zeros({2, 3, 4}), w = Tensor::zeros({5, 3, 4});
  EXPECT_EQ(error_of<ShapeError>([&] {
              eq_linear_forward(c4, Tensor::zeros({2, 2, 4}), w, {});
            }),
            "eq_linear: input [2, 2, 4] does not fit weight [5, 3, 4]: expected [N, 3, 4]");
  EXPECT_EQ(error_of<ShapeError>([&] {
              eq_linear_forward(c4, x, Tensor::zeros({5, 3, 2}), {});
            }),
            "eq_linear: weight [5, 3, 2] is not [D, C, 4] of group c4");
  EXPECT_EQ(error_of<ValueError>([&] {
              eq_linear_forward(c4, x, w, {}, {EqBackend::flash, 7});
            }),
            "products 7: group c4 has forms of 5 and 6 products");
  EXPECT_NE(error_of<ShapeError>([&] { eq_linear_forward(c4, x, w, Tensor::zeros({4})); }), "no error");
  EXPECT_NE(error_of<DTypeError>([&] { eq_linear_forward(c4, x, w.to(DType::f64), {}); }), "no error");
  EXPECT_EQ(error_of<ValueError>([] { parse_eq_backend("fast"); }),
            "backend 'fast': expected auto, flash, naive, fused or packed");
}

TEST(EqLinear, KernelsAreNamed) {
  const Group& c4 = Group::get("c4");
  EXPECT_EQ(eq_linear_kernel(c4, {EqBackend::naive}, DType::f32, 64, 32, 32),
            fmt::format("naive_{}", cpu::dense_library()));
  EXPECT_EQ(eq_linear_kernel(c4, {EqBackend::flash}, DType::f64, 64, 32, 32), "flash5_eigen");
  EXPECT_EQ(eq_linear_kernel(c4, {EqBackend::packed}, DType::f32, 64, 32, 32),
            fmt::format("flash5_{}", cpu::dense_library()));
  EXPECT_EQ(eq_linear_kernel(c4, {EqBackend::fused, 6}, DType::f32, 64, 32, 32),
            fmt::format("flash6_{}", cpu::flash_target()));
}

}  // namespace
}  // namespace gyre::kernels
