#include <cmath>
#include <ostream>

#include "autograd/ops/attention.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/linear_algebra.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/normalization.h"
#include "autograd/ops/reduction.h"
#include "autograd/ops/shape.h"
#include "core/parallel.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using Inputs = std::vector<Variable>;
using Values = std::vector<double>;

/// f64 runs other code than f32: every operation of both is compared on the same inputs.
struct Case {
  std::string name;
  Operation operation;
  std::vector<Shape> shapes;
  double low = -1, high = 1;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

double relative_error(const Values& values, const Values& reference) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    difference += (values[i] - reference[i]) * (values[i] - reference[i]);
    norm += reference[i] * reference[i];
  }
  return std::sqrt(difference / norm);
}

/// Output and gradients of all inputs.
std::vector<Values> run(const Case& c, DType dtype) {
  Inputs inputs;
  for (const Shape& shape : c.shapes) {
    RandomStream stream(3, Purpose::test, inputs.size());
    inputs.emplace_back(random_uniform(shape, c.low, c.high, stream, DType::f32).to(dtype), true);
  }
  const Variable y = c.operation(inputs);
  EXPECT_EQ(y.dtype(), dtype);
  // Positive gradients: sums over them do not cancel, so that the relative error means something.
  RandomStream stream(4, Purpose::test);
  y.backward(random_uniform(y.shape(), 0.5, 1.5, stream, DType::f32).to(dtype));
  std::vector<Values> results = {y.data().to_vector()};
  for (const Variable& input : inputs) results.push_back(input.grad().to_vector());
  return results;
}

class Precision : public testing::TestWithParam<Case> {
 protected:
  ~Precision() override { set_num_threads(threads_); }

 private:
  int threads_ = num_threads();
};

TEST_P(Precision, SingleAgreesWithDouble) {
  const std::vector<Values> reference = run(GetParam(), DType::f64);
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    const std::vector<Values> results = run(GetParam(), DType::f32);
    ASSERT_EQ(results.size(), reference.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_LE(relative_error(results[i], reference[i]), 1e-6)
          << (i == 0 ? "output" : "gradient ") << (i == 0 ? "" : std::to_string(i - 1)) << ", " << threads
          << " threads";
    }
    EXPECT_EQ(run(GetParam(), DType::f32), results) << "not the same twice with " << threads << " threads";
  }
}

std::vector<Case> elementwise_cases() {
  const Shape shape{512, 96};
  return {
      {"add", [](Inputs& in) { return in[0] + in[1]; }, {shape, shape}},
      {"add_bias", [](Inputs& in) { return in[0] + in[1]; }, {shape, {96}}},
      {"sub", [](Inputs& in) { return in[0] - in[1]; }, {shape, {512, 1}}},
      {"mul", [](Inputs& in) { return in[0] * in[1]; }, {shape, shape}, 0.5, 2},
      {"mul_row", [](Inputs& in) { return in[0] * in[1]; }, {shape, {96}}, 0.5, 2},
      {"div", [](Inputs& in) { return in[0] / in[1]; }, {shape, shape}, 0.5, 2},
      {"div_column", [](Inputs& in) { return in[0] / in[1]; }, {shape, {512, 1}}, 0.5, 2},
      {"neg", [](Inputs& in) { return neg(in[0]); }, {shape}},
      {"exp", [](Inputs& in) { return exp(in[0]); }, {shape}, -4, 4},
      {"log", [](Inputs& in) { return log(in[0]); }, {shape}, 0.1, 4},
      {"sqrt", [](Inputs& in) { return sqrt(in[0]); }, {shape}, 0.1, 4},
      {"tanh", [](Inputs& in) { return tanh(in[0]); }, {shape}, -3, 3},
      {"relu", [](Inputs& in) { return relu(in[0]); }, {shape}},
      {"gelu", [](Inputs& in) { return gelu(in[0]); }, {shape}, -4, 4},
      {"affine", [](Inputs& in) { return affine(in[0], 1.5, 3); }, {shape}},
  };
}

std::vector<Case> shape_cases() {
  const Shape shape{512, 96};
  const Tensor index = Tensor::from<std::int64_t>({5, 95, 0, 17, 17}, {5});
  return {
      {"sum", [](Inputs& in) { return sum(in[0]); }, {shape}, 0, 1},
      {"sum_rows", [](Inputs& in) { return sum(in[0], {1}); }, {shape}, 0, 1},
      {"sum_columns", [](Inputs& in) { return sum(in[0], {0}, true); }, {shape}, 0, 1},
      {"mean", [](Inputs& in) { return mean(in[0]); }, {shape}, 0, 1},
      {"mean_middle", [](Inputs& in) { return mean(in[0], {1}); }, {{16, 32, 96}}, 0, 1},
      {"reshape",
       [](Inputs& in) {
         return reshape(in[0], {96, 512});
       },
       {shape}},
      {"permute",
       [](Inputs& in) {
         return permute(in[0], {2, 0, 1});
       },
       {{16, 32, 96}}},
      {"transpose", [](Inputs& in) { return transpose(in[0], 0, 1); }, {shape}},
      {"slice", [](Inputs& in) { return slice(in[0], 1, 3, 90, 2); }, {shape}},
      {"select", [](Inputs& in) { return select(in[0], 0, 5); }, {shape}},
      {"expand",
       [](Inputs& in) {
         return expand(in[0], {512, 96});
       },
       {{1, 96}}},
      {"unsqueeze", [](Inputs& in) { return unsqueeze(in[0], 1); }, {shape}},
      {"concat",
       [](Inputs& in) {
         return concat({in[0], in[1]}, 1);
       },
       {shape, {512, 32}}},
      {"gather", [index](Inputs& in) { return gather(in[0], index); }, {shape}},
  };
}

std::vector<Case> layer_cases() {
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < 512; ++i) classes.push_back(i % 96);
  const Tensor labels = Tensor::from(classes, {512});
  const Tensor targets = softmax(Variable(test::random_tensor({512, 96}, 5, DType::f32))).data();
  const auto of_type = [](const Tensor& t, const Variable& like) { return t.to(like.dtype()); };
  return {
      {"matmul", [](Inputs& in) { return matmul(in[0], in[1]); }, {{512, 96}, {96, 64}}},
      {"matmul_batch", [](Inputs& in) { return matmul(in[0], in[1]); }, {{8, 64, 96}, {8, 96, 48}}},
      {"matmul_shared", [](Inputs& in) { return matmul(in[0], in[1]); }, {{8, 64, 96}, {96, 48}}},
      {"linear", [](Inputs& in) { return linear(in[0], in[1], in[2]); }, {{8, 64, 96}, {80, 96}, {80}}},
      {"linear_cached",
       [](Inputs& in) { return linear(in[0], in[1], in[2], std::make_shared<kernels::PackedWeight>()); },
       {{512, 96}, {80, 96}, {80}}},
      {"layer_norm",
       [](Inputs& in) { return layer_norm(in[0], in[1], in[2], 1, 1e-6); },
       {{512, 96}, {96}, {96}}},
      {"layer_norm_tied",
       [](Inputs& in) { return layer_norm(in[0], in[1], in[2], 4, 1e-6); },
       {{512, 96}, {24}, {24}}},
      {"softmax", [](Inputs& in) { return softmax(in[0]); }, {{512, 96}}, -4, 4},
      {"attention", [](Inputs& in) { return attention(in[0]); }, {{8, 33, 3, 4, 16}}, -2, 2},
      {"attention_reference",
       [](Inputs& in) { return attention_reference(in[0]); },
       {{8, 33, 3, 4, 16}},
       -2,
       2},
      {"cross_entropy",
       [labels](Inputs& in) { return cross_entropy(in[0], labels, 0.1); },
       {{512, 96}},
       -4,
       4},
      {"cross_entropy_soft",
       [=](Inputs& in) { return cross_entropy_soft(in[0], of_type(targets, in[0])); },
       {{512, 96}},
       0,
       4},
  };
}

std::vector<Case> eq_linear_cases() {
  std::vector<Case> cases;
  for (const std::string_view name : Group::names()) {
    const Group& group = Group::get(name);
    const std::int64_t order = group.order();
    for (const EqBackend backend : {EqBackend::automatic, EqBackend::flash, EqBackend::naive}) {
      for (const bool cached : {false, true}) {
        cases.push_back(
            {fmt::format("eq_linear_{}_{}{}", name, kernels::name_of(backend), cached ? "_cached" : ""),
             [&group, backend, cached](Inputs& in) {
               auto planes = cached ? std::make_shared<kernels::EqPlanes>() : nullptr;
               return eq_linear(group, in[0], in[1], in[2], {backend, 0}, planes);
             },
             // Ragged: no multiple of any vector width.
             {{4, 131, 13 * order}, {19, 13, order}, {19}}});
      }
    }
  }
  return cases;
}

const auto case_name = [](const testing::TestParamInfo<Case>& instance) { return instance.param.name; };
INSTANTIATE_TEST_SUITE_P(Elementwise, Precision, testing::ValuesIn(elementwise_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Shape, Precision, testing::ValuesIn(shape_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Layer, Precision, testing::ValuesIn(layer_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(EqLinear, Precision, testing::ValuesIn(eq_linear_cases()), case_name);

}  // namespace
}  // namespace gyre
