#include "kernels/eq_linear.h"

#include <gmock/gmock.h>

#include <array>

#include "tests/cuda/compare.h"

namespace gyre::kernels {
namespace {

/// Forward, with and without an activation, and all gradients. The CPU takes its naive form.
Tensors run(const Group& group, const EqLinearOptions& options, const Tensors& t) {
  const Tensor &x = t[0], &w = t[1], &b = t[2], &grad = t[3];
  EqLinearOptions own = options;
  if (x.device().is_cpu()) own.backend = EqBackend::naive;
  EqPlanes cache;
  Tensor sum;
  const Tensor y = eq_linear_forward(group, x, w, b, own, &cache);
  const Tensor active = eq_linear_forward(group, x, w, b, own, &cache, Activation::gelu, &sum);
  const LinearGrads grads = eq_linear_backward(group, x, w, grad, true, true, true, own, &cache);
  const LinearGrads only_x = eq_linear_backward(group, x, w, grad, true, false, false, own, &cache);
  const LinearGrads only_w = eq_linear_backward(group, x, w, grad, false, true, false, own, &cache);
  // On values that do not depend on the type.
  const LinearGrads behind = eq_linear_backward(group, x, w, grad, true, true, true, own, &cache, grad),
                    behind_x = eq_linear_backward(group, x, w, grad, true, false, false, own, &cache, grad);
  return {y,        active,   sum,      grads.x,  grads.w,  grads.b,
          only_x.x, only_w.w, behind.x, behind.w, behind.b, behind_x.x};
}

TEST(CudaEqLinear, EveryGroupAndForm) {
  for (const auto name : Group::names()) {
    const Group& group = Group::get(name);
    const std::int64_t order = group.order();
    for (const int products : {group.plain_form().products(), group.fewest_form().products()})
      for (const EqBackend backend : {EqBackend::flash, EqBackend::naive, EqBackend::automatic})
        for (const auto& [n, c, d] : {std::array{9, 5, 3}, std::array{33, 16, 32}, std::array{1, 1, 1}}) {
          SCOPED_TRACE(
              fmt::format("{}, {} products, {}, [{}, {}, {}]", name, products, name_of(backend), n, c, d));
          compare(
              [&](const Tensors& x) {
                return run(group, {backend, products}, x);
              },
              {normal({n, c, order}, 1), normal({d, c, order}, 2), normal({d}, 3), normal({n, d, order}, 4)},
              3e-5, 0);
        }
  }
}

TEST(CudaEqLinear, WithoutBiasAndEmpty) {
  const Group& group = Group::get("c4");
  for (const EqBackend backend : {EqBackend::flash, EqBackend::naive})
    for (const auto& [n, c, d] :
         {std::array{6, 4, 8}, std::array{0, 4, 8}, std::array{3, 0, 2}, std::array{3, 2, 0}}) {
      SCOPED_TRACE(fmt::format("{}, [{}, {}, {}]", name_of(backend), n, c, d));
      compare([&](const Tensors& x) { return run(group, {backend}, x); },
              {normal({n, c, 4}, 5), normal({d, c, 4}, 6), Tensor(), normal({n, d, 4}, 7)}, 3e-5, 48);
    }
}

double rel_l2(const Tensor& value, const Tensor& reference) {
  const std::vector<double> a = value.to_vector(), b = reference.to_vector();
  double difference = 0, magnitude = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    magnitude += b[i] * b[i];
  }
  return std::sqrt(difference / magnitude);
}

TEST(CudaEqLinear, FlashIsAboutAsExactAsNaiveIn16Bits) {
  if (gpu.is_cpu()) GTEST_SKIP() << cuda_alone;
  const char* const results[]{"y", "dx", "dw"};
  for (const auto name : Group::names())
    for (const DType dtype : {DType::f16, DType::bf16}) {
      const Group& group = Group::get(name);
      const std::int64_t n = 48, c = 40, d = 56, order = group.order();
      const Tensors given =
          in_type({normal({n, c, order}, 21), normal({d, c, order}, 22), normal({n, d, order}, 23)}, dtype);
      Tensors there;
      for (const Tensor& x : given) there.push_back(x.to(gpu));
      const auto step = [&](const Tensors& t, EqBackend backend) -> Tensors {
        const LinearGrads grads = eq_linear_backward(group, t[0], t[1], t[2], true, true, false, {backend});
        // Compared as rounded: the naive dw in f32 has no error at all.
        return {eq_linear_forward(group, t[0], t[1], {}, {backend}), grads.x, grads.w.to(t[1].dtype())};
      };
      const Tensors exact = step(in_type(given, DType::f64), EqBackend::naive);
      const Tensors flash = step(there, EqBackend::flash), naive = step(there, EqBackend::naive);
      for (std::size_t i = 0; i < exact.size(); ++i)
        EXPECT_LT(rel_l2(flash[i], exact[i]) / rel_l2(naive[i], exact[i]), 2)
            << results[i] << ", " << name << ", " << name_of(dtype);
    }
}

TEST(CudaEqLinear, ManyRowsGoInSlabs) {
  // Planes of 5 products and 1602 channels take 32 kB a row in f32: two slabs.
  const Group& group = Group::get("c4");
  const std::int64_t n = 1100, c = 1600, d = 2;
  Tensors inputs{normal({n, c, 4}, 8, 0.1), normal({d, c, 4}, 9, 0.1), normal({d}, 10),
                 normal({n, d, 4}, 11)};
  inputs = in_type(inputs, DType::f32);
  Tensors there;
  for (const Tensor& x : inputs) there.push_back(x.to(gpu));
  const auto step = [&](const Tensors& t, EqBackend backend) -> Tensors {
    const LinearGrads grads = eq_linear_backward(group, t[0], t[1], t[3], true, true, true, {backend});
    return {eq_linear_forward(group, t[0], t[1], t[2], {backend}), grads.x, grads.w, grads.b};
  };
  const Tensors got = step(there, EqBackend::flash), wanted = step(inputs, EqBackend::naive);
  for (std::size_t i = 0; i < got.size(); ++i) expect_values(got[i], wanted[i].to_vector(), 2e-5);
}

TEST(CudaEqLinear, RebuildsPlanesWhenTheWeightChanges) {
  const Group& group = Group::get("d4");
  const Tensor x = normal({5, 3, 8}, 12).to(gpu);
  Tensor w = normal({4, 3, 8}, 13).to(gpu);
  for (const EqBackend backend : {EqBackend::flash, EqBackend::naive}) {
    EqPlanes cache;
    const auto forward = [&] { return eq_linear_forward(group, x, w, {}, {backend}, &cache); };
    forward();
    eq_linear_backward(group, x, w, forward(), true, true, true, {backend}, &cache);
    EXPECT_EQ(cache.rebuilds(), 1);
    w.copy_(normal({4, 3, 8}, 14).to(gpu));
    expect_values(forward(),
                  eq_linear_forward(group, x.to(Device::cpu()), w.to(Device::cpu()), {}).to_vector(), 1e-12);
    EXPECT_EQ(cache.rebuilds(), 2);
  }
}

TEST(CudaEqLinear, ExpandAndFold) {
  for (const auto name : Group::names()) {
    const Group& group = Group::get(name);
    compare(
        [&](const Tensors& x) -> Tensors {
          const Tensor dense = expand_eq_weight(group, x[0]);
          return {dense, fold_eq_weight(group, x[1], 3, 5)};
        },
        {normal({3, 5, group.order()}, 15), normal({3 * group.order(), 5 * group.order()}, 16)});
  }
}

TEST(CudaEqLinear, NamesItsKernel) {
  if (gpu.is_cpu()) GTEST_SKIP() << cuda_alone;
  const Group& group = Group::get("c4");
  const auto name = [&](EqBackend backend, std::int64_t c) {
    return eq_linear_kernel(group, {backend}, DType::f32, 1000, c, c, EqDirection::forward, gpu);
  };
  EXPECT_EQ(name(EqBackend::flash, 8), "flash5_cublas");
  EXPECT_EQ(name(EqBackend::naive, 512), "naive_cublas");
  EXPECT_EQ(name(EqBackend::automatic, 8), "naive_cublas");
  EXPECT_EQ(name(EqBackend::automatic, 512), "flash5_cublas");
}

}  // namespace
}  // namespace gyre::kernels
