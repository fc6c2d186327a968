// A network of one's own: tells bars, corners and crosses apart, trained on upright images only, tested on
// turned ones.

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <vector>

#include "autograd/ops/loss.h"
#include "autograd/ops/reduction.h"
#include "autograd/ops/shape.h"
#include "core/group_action.h"
#include "core/random.h"
#include "kernels/optimizer.h"
#include "kernels/reduce.h"
#include "layers/activation.h"
#include "layers/eq_linear.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/patch_embed.h"

namespace {

constexpr std::int64_t size = 8, classes = 3, channels = 8;

/// Patches → EQ-Linear → mean over places and sum over the group, which makes the logits invariant.
class ShapeNet : public gyre::Module {
 public:
  ShapeNet(const gyre::Group& group, gyre::RandomStream& random)
      : group_(group),
        embed_(add<gyre::EqPatchEmbed>("embed", group, gyre::PatchConfig{1, size, 4}, channels, random)),
        norm_(add<gyre::EqLayerNorm>("norm", group, channels)),
        hidden_(add<gyre::EqLinear>("hidden", group, channels, 4 * channels, true, random)),
        gelu_(add<gyre::Gelu>("gelu")),
        head_(add<gyre::Linear>("head", 4 * channels, classes, true, random)) {}

  /// Images [B, 1, 8, 8] → logits [B, 3].
  gyre::Variable forward(const gyre::Variable& images) override {
    const gyre::Variable tokens = gelu_(hidden_(norm_(embed_(images))));  // [B, 4, 32·T]
    const gyre::Variable pooled = gyre::mean(tokens, {1}, false);
    return head_(gyre::sum(gyre::reshape(pooled, {-1, 4 * channels, group_.order()}), {2}, false));
  }
  std::string_view kind() const override { return "ShapeNet"; }

 private:
  const gyre::Group& group_;
  gyre::EqPatchEmbed& embed_;
  gyre::EqLayerNorm& norm_;
  gyre::EqLinear& hidden_;
  gyre::Gelu& gelu_;
  gyre::Linear& head_;
};

struct Examples {
  gyre::Tensor images, labels;
};

/// Noisy pictures of a bar, a corner or a cross at a random place.
Examples draw_examples(std::int64_t count, gyre::RandomStream& random) {
  gyre::Tensor images = gyre::random_normal({count, 1, size, size}, 0.3, random);
  gyre::Tensor labels = gyre::Tensor::zeros({count}, gyre::DType::i64);
  float* pixels = images.mutable_data<float>();
  auto* label = labels.mutable_data<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i, pixels += size * size) {
    label[i] = static_cast<std::int64_t>(random.below(classes));
    const auto row = static_cast<std::int64_t>(1 + random.below(4)),
               col = static_cast<std::int64_t>(1 + random.below(4));
    for (std::int64_t k = 0; k < 3; ++k) {
      const std::int64_t across =
          label[i] == 2 ? row + 1 : row;  // a cross meets in its middle, a corner at its end
      pixels[across * size + col + k] += 2;
      if (label[i] == 1) pixels[(row + k) * size + col] += 2;
      if (label[i] == 2) pixels[(row + k) * size + col + 1] += 2;
    }
  }
  return {images, labels};
}

double accuracy(ShapeNet& net, const gyre::Tensor& images, const gyre::Tensor& labels) {
  const gyre::NoGrad no_grad;
  const auto predicted = gyre::kernels::argmax_rows(net(gyre::Variable(images)).data());
  std::int64_t right = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) right += predicted[i] == labels.data<std::int64_t>()[i];
  return 100.0 * static_cast<double>(right) / static_cast<double>(predicted.size());
}

}  // namespace

int main() {
  const gyre::Group& c4 = gyre::Group::get("c4");
  gyre::RandomStream random(1, gyre::Purpose::init);
  ShapeNet net(c4, random);
  fmt::print("{} parameters\n", net.parameter_count());

  std::vector<gyre::Tensor> weights, first_moments, second_moments;
  for (const auto& [name, parameter] : net.parameters()) {
    weights.push_back(parameter->variable.data());
    first_moments.push_back(gyre::Tensor::zeros(weights.back().shape()));
    second_moments.push_back(gyre::Tensor::zeros(weights.back().shape()));
  }
  for (std::int64_t step = 1; step <= 400; ++step) {
    const Examples batch = draw_examples(64, random);
    net.zero_grad();
    const gyre::Variable loss = gyre::cross_entropy(net(gyre::Variable(batch.images)), batch.labels, 0);
    loss.backward();
    std::vector<gyre::Tensor> gradients;
    for (const auto& [name, parameter] : net.parameters()) gradients.push_back(parameter->variable.grad());
    gyre::kernels::adamw_step(weights, gradients, first_moments, second_moments,
                              {5e-3, 0.9, 0.999, 1e-8, 0.01, step, 1.0});
    if (step % 100 == 0) fmt::print("step {:3}  loss {:.4f}\n", step, loss.data().item());
  }

  const Examples test = draw_examples(1000, random);
  const double upright = accuracy(net, test.images, test.labels);
  bool same = true;
  for (int turn = 0; turn < 4; ++turn) {
    const double turned = accuracy(net, gyre::act_on_image(c4, turn, test.images), test.labels);
    fmt::print("turned {:3}°  accuracy {:.1f} %\n", 90 * turn, turned);
    same = same && turned == upright;
  }
  if (upright > 90 && same) return 0;
  fmt::print("expected more than 90 %, the same at every turn\n");
  return 1;
}
