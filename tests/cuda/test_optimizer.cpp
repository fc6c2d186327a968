#include "kernels/optimizer.h"

#include "tests/cuda/compare.h"

namespace gyre::kernels {
namespace {

/// Tensors of both types and several sizes; every list of a step gets its own seed.
Tensors list(std::uint64_t seed, Device device) {
  Tensors result;
  for (const Shape& shape : {Shape{5}, Shape{0}, Shape{3, 70}, Shape{5000}, Shape{}})
    for (const DType dtype : {DType::f32, DType::f64})
      result.push_back(random(shape, dtype, seed + static_cast<std::uint64_t>(shape.numel())).to(device));
  return result;
}

void expect_equal(const Tensors& got, const Tensors& wanted) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(got[i].device(), gpu);
    expect_values(got[i], wanted[i].to_vector(), got[i].dtype() == DType::f64 ? 1e-13 : 1e-5);
  }
}

/// Takes the same step on the CPU and on CUDA and compares what it wrote.
template <class F>
void compare_steps(F step) {
  std::vector<Tensors> results;
  for (const Device device : {Device::cpu(), gpu}) {
    Tensors p = list(1, device), g = list(2, device), m = list(3, device), v = list(4, device);
    for (Tensor& x : v) x.copy_(Tensor::full(x.shape(), 0.5, x.dtype(), device));
    g[3] = Tensor();  // skipped
    step(p, g, m, v);
    p.insert(p.end(), m.begin(), m.end());
    p.insert(p.end(), v.begin(), v.end());
    results.push_back(p);
  }
  expect_equal(results[1], results[0]);
}

TEST(CudaOptimizer, AdamW) {
  compare_steps([](Tensors& p, const Tensors& g, Tensors& m, Tensors& v) {
    AdamWStep options;
    options.lr = 0.1;
    options.weight_decay = 0.05;
    options.step = 3;
    options.grad_scale = 0.5;
    adamw_step(p, g, m, v, options);
  });
}

TEST(CudaOptimizer, Sgd) {
  for (const bool nesterov : {false, true})
    compare_steps([nesterov](Tensors& p, const Tensors& g, Tensors& m, Tensors&) {
      sgd_step(p, g, m, {0.1, 0.9, nesterov, 0.01, 2});
    });
  compare_steps([](Tensors& p, const Tensors& g, Tensors&, Tensors&) { sgd_step(p, g, {}, {}); });
}

TEST(CudaOptimizer, Lerp) {
  compare_steps([](Tensors& p, const Tensors& g, Tensors&, Tensors&) {
    Tensors source = g;
    source[3] = p[3];
    lerp_(p, source, 0.1);
  });
}

TEST(CudaOptimizer, GlobalNorm) {
  Tensors there = list(5, gpu), here = list(5, Device::cpu());
  there.emplace_back();
  EXPECT_NEAR(global_norm(there), global_norm(here), 1e-12 * global_norm(here));
  EXPECT_EQ(global_norm({}), 0);
  EXPECT_EQ(global_norm(Tensors{Tensor::empty({0}, DType::f32, gpu)}), 0);
}

}  // namespace
}  // namespace gyre::kernels
