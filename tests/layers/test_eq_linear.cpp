#include "layers/eq_linear.h"

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduction.h"
#include "layers/equivariance.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using kernels::EqBackend;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::init_stream;
using testing::random;
using testing::rel_l2;

EqLinear make_layer(const char* group, std::int64_t in, std::int64_t out,
                    EqBackend backend = EqBackend::automatic, int products = 0) {
  RandomStream stream = init_stream();
  return EqLinear(Group::get(group), in, out, true, stream, {backend, products});
}

/// Y and, for the incoming gradient `grad`, dX, dW, db by the dense matrix M[d·T+t][c·T+s] = W[d,c,t⁻¹s],
/// written out.
struct Dense {
  std::vector<double> y, dx, dw, db;
};
Dense dense(const Group& group, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& grad) {
  const int t_count = group.order(), rows = static_cast<int>(x.size(0));
  const int in = static_cast<int>(w.size(1)), out = static_cast<int>(w.size(0));
  const auto at = [](int i, int width, int j) { return static_cast<std::size_t>(i * width + j); };
  Dense r{std::vector<double>(static_cast<std::size_t>(rows * out * t_count)),
          std::vector<double>(static_cast<std::size_t>(rows * in * t_count)),
          std::vector<double>(static_cast<std::size_t>(out * in * t_count)),
          std::vector<double>(static_cast<std::size_t>(out))};
  for (int n = 0; n < rows; ++n) {
    for (int d = 0; d < out; ++d) {
      for (int t = 0; t < t_count; ++t) {
        const double g = grad.at({n, d * t_count + t});
        double y = b.at({d});
        for (int c = 0; c < in; ++c) {
          for (int s = 0; s < t_count; ++s) {
            const int u = group.mul(group.inv(t), s);
            y += x.at({n, c * t_count + s}) * w.at({d, c, u});
            r.dx[at(n, in * t_count, c * t_count + s)] += g * w.at({d, c, u});
            r.dw[at(d * in + c, t_count, u)] += g * x.at({n, c * t_count + s});
          }
        }
        r.y[at(n, out * t_count, d * t_count + t)] = y;
        r.db[static_cast<std::size_t>(d)] += g;
      }
    }
  }
  return r;
}

TEST(EqLinear, ExampleByHand) {
  EqLinear layer = make_layer("c4", 1, 1);
  layer.to(DType::f64);
  layer.load_state({{"weight", Tensor::from<double>({1, 2, 3, 4}, {1, 1, 4})}, {"bias", Tensor::zeros({1})}});
  for (const EqBackend backend : {EqBackend::naive, EqBackend::flash}) {
    layer.set_backend(backend);
    const Tensor y = layer(Variable(Tensor::from<double>({5, 6, 7, 8}, {1, 4}))).data();
    for (int t = 0; t < 4; ++t)
      EXPECT_NEAR(y.at({0, t}), (std::vector<double>{70, 64, 62, 64})[static_cast<std::size_t>(t)], 1e-12);
  }
}

TEST(EqLinear, D4ExampleByHand) {
  EqLinear layer = make_layer("d4", 1, 1);
  layer.to(DType::f64);
  layer.load_state(
      {{"weight", Tensor::from<double>({2, 7, 1, 8, 3, 6, 9, 4}, {1, 1, 8})}, {"bias", Tensor::zeros({1})}});
  const std::vector<double> expected{37, 42, 98, 61, 24, 73, 16, 89};
  for (const EqBackend backend : {EqBackend::naive, EqBackend::flash}) {
    layer.set_backend(backend);
    const Tensor y = layer(Variable(Tensor::from<double>({0, 1, 0, 0, 10, 0, 0, 0}, {1, 8}))).data();
    for (int t = 0; t < 8; ++t) EXPECT_NEAR(y.at({0, t}), expected[static_cast<std::size_t>(t)], 1e-12);
  }
}

struct Case {
  const char* group;
  EqBackend backend;
  int products;
};

class EqLinearForms : public ::testing::TestWithParam<Case> {};

TEST_P(EqLinearForms, MatchesTheDenseMatrixForwardAndBackward) {
  const auto [name, backend, products] = GetParam();
  const Group& group = Group::get(name);
  EqLinear layer = make_layer(name, 3, 5, backend, products);
  layer.to(DType::f64);
  Variable x(random({7, 3 * group.order()}, 1), true);
  const Tensor grad = random({7, 5 * group.order()}, 2);
  const Variable y = layer(x);
  y.backward(grad);
  const Dense expected = dense(group, x.data(), layer.state().at("weight"), layer.state().at("bias"), grad);
  EXPECT_LT(rel_l2(y.data(), Tensor::from(expected.y, y.shape())), 1e-13);
  EXPECT_LT(rel_l2(x.grad(), Tensor::from(expected.dx, x.shape())), 1e-13);
  const auto parameters = layer.parameters();
  EXPECT_LT(
      rel_l2(parameters[0].parameter->variable.grad(), Tensor::from(expected.dw, {5, 3, group.order()})),
      1e-13);
  EXPECT_LT(rel_l2(parameters[1].parameter->variable.grad(), Tensor::from(expected.db, {5})), 1e-13);
}

TEST_P(EqLinearForms, CommutesWithTheIndexAction) {
  const auto [name, backend, products] = GetParam();
  const Group& group = Group::get(name);
  EqLinear layer = make_layer(name, 6, 4, backend, products);
  const Meaning vector = Meaning::vector();
  EXPECT_LT(worst_nmae(check_equivariance(layer, group, random({9, 6 * group.order()}, 1, DType::f32), vector,
                                          vector)),
            1e-5);
  layer.to(DType::f64);
  const auto errors = check_equivariance(layer, group, random({9, 6 * group.order()}, 1), vector, vector);
  EXPECT_EQ(static_cast<int>(errors.size()), group.order());
  EXPECT_LT(worst_nmae(errors), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Groups, EqLinearForms,
                         ::testing::Values(Case{"c1", EqBackend::automatic, 0},
                                           Case{"c2", EqBackend::flash, 0},
                                           Case{"mirror", EqBackend::flash, 0},
                                           Case{"c4", EqBackend::flash, 5}, Case{"c4", EqBackend::flash, 6},
                                           Case{"c4", EqBackend::naive, 0}, Case{"c8", EqBackend::flash, 0},
                                           Case{"d4", EqBackend::flash, 0}, Case{"d4", EqBackend::flash, 12},
                                           Case{"d4", EqBackend::naive, 0}),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}", test.param.group,
                                              kernels::name_of(test.param.backend), test.param.products);
                         });

TEST(EqLinear, StartsUniformByFanIn) {
  EqLinear layer = make_layer("c4", 16, 64);
  EXPECT_EQ(layer.state().at("weight").shape(), (Shape{64, 16, 4}));
  EXPECT_EQ(layer.state().at("bias").shape(), (Shape{64}));
  for (const char* name : {"weight", "bias"}) {
    double largest = 0;
    for (const double v : layer.state().at(name).to_vector()) largest = std::max(largest, std::abs(v));
    EXPECT_LE(largest, 0.125) << name;
    EXPECT_GT(largest, 0.11) << name;
  }
}

/// Sum of all outputs: enough to use forward, dX and dW.
void forward_and_backward(EqLinear& layer, std::uint64_t index) {
  Variable x(random({4, layer.parameters()[0].parameter->variable.size(1) * 4}, index, DType::f32), true);
  sum(layer(x) * layer(x)).backward();
}

class EqLinearPlanes : public ::testing::TestWithParam<EqBackend> {};

TEST_P(EqLinearPlanes, RebuildOncePerChangeOfTheWeight) {
  EqLinear layer = make_layer("c4", 8, 8, GetParam());
  EXPECT_EQ(layer.rebuilds(), 0);
  for (std::uint64_t micro = 0; micro < 4; ++micro) forward_and_backward(layer, micro);
  EXPECT_EQ(layer.rebuilds(), 1);

  Variable& weight = layer.parameters()[0].parameter->variable;
  Tensor data = weight.data();
  data.mutable_data<float>()[0] += 1;  // as an optimiser writes
  for (std::uint64_t micro = 0; micro < 4; ++micro) forward_and_backward(layer, micro);
  EXPECT_EQ(layer.rebuilds(), 2);

  TensorMap copy;
  for (const auto& [name, tensor] : layer.state()) copy[name] = tensor.clone();
  layer.load_state(copy);
  forward_and_backward(layer, 0);
  EXPECT_EQ(layer.rebuilds(), 3);

  // An EMA swap exchanges storages; the planes must follow in both directions.
  const Tensor own = weight.data(), averaged = Tensor::full(own.shape(), 0.5);
  const Variable x(random({2, 32}, 9, DType::f32));
  const Tensor before = layer(x).data();
  weight.set_data(averaged);
  const Tensor during = layer(x).data();
  weight.set_data(own);
  const Tensor after = layer(x).data();
  EXPECT_EQ(layer.rebuilds(), 5);
  EXPECT_GT(rel_l2(during, before), 0.1);
  EXPECT_EQ(after.to_vector(), before.to_vector());
}

INSTANTIATE_TEST_SUITE_P(Backends, EqLinearPlanes, ::testing::Values(EqBackend::flash, EqBackend::naive),
                         [](const auto& test) { return std::string(kernels::name_of(test.param)); });

TEST(EqLinear, BackendsAgreeOnOneWeight) {
  EqLinear layer = make_layer("c4", 32, 32);
  const Variable x(random({10, 128}, 1, DType::f32));
  layer.set_backend(EqBackend::flash);
  const Tensor flash = layer(x).data();
  EXPECT_THAT(layer.kernel_name(DType::f32, 10), HasSubstr("flash5"));
  layer.set_backend(EqBackend::naive);
  EXPECT_LT(rel_l2(layer(x).data(), flash), 1e-5);
  EXPECT_THAT(layer.kernel_name(DType::f32, 10), HasSubstr("naive"));
}

TEST(EqLinear, RefusesOtherWidths) {
  EqLinear layer = make_layer("c4", 4, 4);
  EXPECT_THROW(layer(Variable(random({2, 12}, 0, DType::f32))), ShapeError);
  EXPECT_EQ(layer.describe(), "4 to 4 per element, c4");
}

}  // namespace
}  // namespace gyre
