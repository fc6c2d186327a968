#include "autograd/ops/normalization.h"

#include <cmath>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduction.h"
#include "autograd/ops/shape.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::gradients_agree;
using test::random_tensor;
using testing::HasSubstr;
using Inputs = std::vector<Variable>;

Operation norm(int repeat, double eps = 1e-6) {
  return [=](Inputs& in) { return layer_norm(in[0], in[1], in[2], repeat, eps); };
}

/// The definition in single steps; gain and bias repeat over the last `repeat` channels of each.
Variable plain_norm(const Variable& x, const Variable& gain, const Variable& bias, std::int64_t repeat,
                    double eps) {
  const auto tied = [repeat](const Variable& v) {
    return reshape(expand(unsqueeze(v, 1), {v.size(0), repeat}), {v.size(0) * repeat});
  };
  const Variable centred = x - mean(x, {-1}, true);
  const Variable deviation = sqrt(affine(mean(centred * centred, {-1}, true), 1, eps));
  return centred / deviation * tied(gain) + tied(bias);
}

TEST(LayerNorm, Gradients) {
  EXPECT_TRUE(gradients_agree(norm(1), {{3, 5}, {5}, {5}}));
  EXPECT_TRUE(gradients_agree(norm(1), {{2, 2, 6}, {6}, {6}}));
}

TEST(LayerNorm, TiedGradients) {
  EXPECT_TRUE(gradients_agree(norm(4), {{3, 8}, {2}, {2}}));
  EXPECT_TRUE(gradients_agree(norm(2), {{2, 2, 6}, {3}, {3}}));
  EXPECT_TRUE(gradients_agree(norm(8), {{3, 8}, {1}, {1}}));
}

TEST(LayerNorm, GradientsWithALargeEps) { EXPECT_TRUE(gradients_agree(norm(2, 0.5), {{3, 6}, {3}, {3}})); }

TEST(LayerNorm, OneElement) {
  const Variable x(Tensor::from({3.0}, {1, 1}), true), gain(Tensor::from({2.0}, {1}), true);
  const Variable bias(Tensor::from({0.5}, {1}), true);
  const Variable y = layer_norm(x, gain, bias, 1, 1e-6);
  EXPECT_EQ(y.data().item(), 0.5);
  y.backward();
  EXPECT_EQ(x.grad().item(), 0);
  EXPECT_EQ(gain.grad().item(), 0);
  EXPECT_EQ(bias.grad().item(), 1);
}

TEST(LayerNorm, EqualsItsDefinition) {
  const Tensor x = random_tensor({2, 3, 12}), gain = random_tensor({3}, 1), bias = random_tensor({3}, 2);
  const Tensor grad = random_tensor({2, 3, 12}, 3);
  std::vector<std::vector<double>> results[2];
  for (const int plain : {0, 1}) {
    const Variable vx(x, true), vg(gain, true), vb(bias, true);
    const Variable y = plain ? plain_norm(vx, vg, vb, 4, 1e-3) : layer_norm(vx, vg, vb, 4, 1e-3);
    y.backward(grad);
    results[plain] = {y.data().to_vector(), vx.grad().to_vector(), vg.grad().to_vector(),
                      vb.grad().to_vector()};
  }
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_THAT(results[0][i], testing::Pointwise(testing::DoubleNear(1e-12), results[1][i])) << i;
  }
}

TEST(LayerNorm, NoRows) {
  const Variable x(random_tensor({0, 4}), true), gain(random_tensor({4}), true),
      bias(random_tensor({4}), true);
  sum(layer_norm(x, gain, bias, 1, 1e-6)).backward();
  EXPECT_EQ(x.grad().shape(), (Shape{0, 4}));
  EXPECT_EQ(gain.grad().to_vector(), std::vector<double>(4));
}

TEST(LayerNorm, FrozenGainAndBias) {
  const Variable gain(random_tensor({2}, 1)), bias(random_tensor({2}, 2));
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return layer_norm(in[0], gain, bias, 3, 1e-6); }, {{2, 6}}));
}

TEST(LayerNorm, Errors) {
  const Variable gain(random_tensor({3})), bias(random_tensor({3}));
  EXPECT_THAT(error_of([&] { layer_norm(Variable(random_tensor({})), gain, bias, 1, 1e-6); }),
              HasSubstr("layer_norm"));
  EXPECT_THAT(error_of([&] {
                layer_norm(Variable(random_tensor({2, 5})), gain, bias, 2, 1e-6);
              }),
              HasSubstr("[2, 5]"));
}

TEST(AddLayerNorm, Gradients) {
  const auto use = [](bool sum_too, bool norm_too) {
    return [=](Inputs& in) {
      const auto [total, norm] = add_layer_norm(in[0], in[1], in[2], in[3], 2, 1e-6);
      if (!norm_too) return total * total;
      return sum_too ? total * norm + affine(total, 3) : norm;
    };
  };
  for (const auto& [sum_too, norm_too] :
       {std::pair{true, true}, std::pair{true, false}, std::pair{false, true}})
    EXPECT_TRUE(gradients_agree(use(sum_too, norm_too), {{2, 3, 8}, {2, 3, 8}, {4}, {4}}));
}

TEST(AddLayerNorm, GradientsWithoutAResidual) {
  const auto use = [](bool sum_too, bool norm_too) {
    return [=](Inputs& in) {
      const auto [same, norm] = add_layer_norm(in[0], Variable(), in[1], in[2], 2, 1e-6);
      if (!norm_too) return same * same;
      return sum_too ? same * norm + affine(same, 3) : norm;
    };
  };
  for (const auto& [sum_too, norm_too] :
       {std::pair{true, true}, std::pair{true, false}, std::pair{false, true}})
    EXPECT_TRUE(gradients_agree(use(sum_too, norm_too), {{2, 3, 8}, {4}, {4}}));
}

TEST(AddLayerNorm, EqualsItsParts) {
  const Tensor grad_sum = random_tensor({3, 8}, 5), grad_norm = random_tensor({3, 8}, 6);
  for (const bool adds : {true, false}) {
    std::vector<std::vector<double>> results[2];
    for (const int fused : {0, 1}) {
      const Variable x(random_tensor({3, 8}, 1), true), r(random_tensor({3, 8}, 2), true),
          gain(random_tensor({2}, 3), true), bias(random_tensor({2}, 4), true);
      AddLayerNorm y;
      if (fused) {
        y = add_layer_norm(x, adds ? r : Variable(), gain, bias, 4, 1e-6);
      } else {
        y.sum = adds ? x + r : x;
        y.norm = layer_norm(y.sum, gain, bias, 4, 1e-6);
      }
      sum(y.sum * Variable(grad_sum) + y.norm * Variable(grad_norm)).backward();
      results[fused] = {y.sum.data().to_vector(), y.norm.data().to_vector(), x.grad().to_vector(),
                        gain.grad().to_vector(), bias.grad().to_vector()};
      if (adds) results[fused].push_back(r.grad().to_vector());
      EXPECT_EQ(y.sum.data().storage() == x.data().storage(), !adds);
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(AddLayerNorm, WithoutRecording) {
  const Variable x(random_tensor({2, 4}), true), gain(random_tensor({4}), true);
  const NoGrad guard;
  const auto [total, norm] = add_layer_norm(x, x, gain, gain, 1, 1e-6);
  EXPECT_FALSE(total.requires_grad());
  EXPECT_FALSE(norm.requires_grad());
}

TEST(AddLayerNorm, Errors) {
  const Variable x(random_tensor({2, 4})), row(random_tensor({4}));
  EXPECT_THAT(error_of([&] { add_layer_norm(x, row, row, row, 1, 1e-6); }), HasSubstr("add_layer_norm"));
}

TEST(Softmax, Gradients) {
  const auto operation = [](Inputs& in) { return softmax(in[0]); };
  EXPECT_TRUE(gradients_agree(operation, {{3, 4}}));
  EXPECT_TRUE(gradients_agree(operation, {{2, 2, 3}}));
  EXPECT_TRUE(gradients_agree(operation, {{5}}));
  EXPECT_TRUE(gradients_agree(operation, {{1}}));
  EXPECT_TRUE(gradients_agree(operation, {{3, 1}}));
}

TEST(Softmax, EqualsItsDefinition) {
  const Variable x(random_tensor({3, 5}));
  const Variable e = exp(x);
  EXPECT_THAT(softmax(x).data().to_vector(),
              testing::Pointwise(testing::DoubleNear(1e-14), (e / sum(e, {-1}, true)).data().to_vector()));
}

TEST(Softmax, NoRows) {
  const Variable x(random_tensor({0, 4}), true);
  sum(softmax(x)).backward();
  EXPECT_EQ(x.grad().shape(), (Shape{0, 4}));
}

}  // namespace
}  // namespace gyre
