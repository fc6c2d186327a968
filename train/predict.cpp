#include "train/predict.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "autograd/variable.h"
#include "core/error.h"
#include "data/decode.h"
#include "data/transform.h"
#include "kernels/softmax.h"
#include "train/checkpoint.h"

namespace gyre {
namespace {

/// Pictures that can be read, as model input f32 [channels, size, size] each; of the others, the error is
/// put into their prediction.
std::vector<Tensor> load_pictures(std::span<Prediction> predictions, const Preprocessing& preprocessing) {
  std::vector<Tensor> pictures;
  for (Prediction& prediction : predictions) {
    try {
      pictures.push_back(preprocess_image(load_image(prediction.file), preprocessing));
    } catch (const FileError& error) {
      prediction.error = error.what();
    }
  }
  return pictures;
}

/// f32 [B, channels, size, size] of B > 0 pictures.
Tensor stack(std::span<const Tensor> parts) {
  const Shape& one = parts[0].shape();
  Tensor whole = Tensor::empty({static_cast<std::int64_t>(parts.size()), one[0], one[1], one[2]});
  for (std::size_t i = 0; i < parts.size(); ++i)
    whole.select(0, static_cast<std::int64_t>(i)).copy_(parts[i]);
  return whole;
}

/// The `top` largest of `probabilities` [K]; of equal ones the lower index first.
std::vector<ClassProbability> best_classes(const Tensor& probabilities, std::span<const std::string> names,
                                           std::int64_t top) {
  const std::vector<double> values = probabilities.to_vector();
  const auto count = static_cast<std::ptrdiff_t>(std::min<std::int64_t>(top, probabilities.numel()));
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::size_t a, std::size_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  });
  std::vector<ClassProbability> classes;
  for (const std::size_t i : std::span(order).first(static_cast<std::size_t>(count))) {
    classes.push_back({static_cast<std::int64_t>(i), i < names.size() ? names[i] : "", values[i]});
  }
  return classes;
}

}  // namespace

std::vector<Prediction> predict(const PredictOptions& options) {
  require<ValueError>(options.top >= 1 && options.batch_size >= 1,
                      "predict: top {} and batch size {} must be positive", options.top, options.batch_size);
  const Checkpoint checkpoint =
      read_checkpoint(find_checkpoint(options.checkpoint), CheckpointParts::weights);
  const auto model = load_model(checkpoint, options.weights, options.device);
  if (options.backend) model->set_backend(*options.backend);
  model->eval();
  const NoGrad no_grad;
  std::vector<Prediction> predictions(options.images.size());
  for (std::size_t i = 0; i < predictions.size(); ++i) predictions[i].file = options.images[i];
  const auto batch_size = static_cast<std::size_t>(options.batch_size);
  for (std::span<Prediction> rest = predictions; !rest.empty();) {
    const std::span<Prediction> part = rest.first(std::min(rest.size(), batch_size));
    rest = rest.subspan(part.size());
    const std::vector<Tensor> pictures = load_pictures(part, checkpoint.preprocessing);
    if (pictures.empty()) continue;
    const Variable logits = (*model)(Variable(stack(pictures).to(options.device)));
    const Tensor probabilities = kernels::softmax_forward(logits.data()).to(Device::cpu());
    std::int64_t row = 0;
    for (Prediction& prediction : part) {
      if (!prediction.error.empty()) continue;
      prediction.classes = best_classes(probabilities.select(0, row++), checkpoint.class_names, options.top);
    }
  }
  return predictions;
}

}  // namespace gyre
