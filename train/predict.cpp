#include "train/predict.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "autograd/variable.h"
#include "data/decode.h"
#include "data/transform.h"
#include "kernels/softmax.h"
#include "train/checkpoint.h"

namespace gyre {
namespace {

/// f32 [B, channels, size, size].
Tensor load_batch(std::span<const std::filesystem::path> files, const Preprocessing& preprocessing) {
  const auto count = static_cast<std::int64_t>(files.size());
  Tensor batch = Tensor::empty({count, preprocessing.channels, preprocessing.size, preprocessing.size});
  for (std::int64_t i = 0; i < count; ++i) {
    batch.select(0, i).copy_(preprocess_image(load_image(files[static_cast<std::size_t>(i)]), preprocessing));
  }
  return batch;
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
  const auto model = load_model(checkpoint, options.weights);
  if (options.backend) model->set_backend(*options.backend);
  model->eval();
  const NoGrad no_grad;
  std::vector<Prediction> predictions;
  const std::span<const std::filesystem::path> files = options.images;
  for (std::size_t first = 0; first < files.size();) {
    const std::size_t count = std::min(files.size() - first, static_cast<std::size_t>(options.batch_size));
    const Tensor batch = load_batch(files.subspan(first, count), checkpoint.preprocessing);
    const Tensor probabilities = kernels::softmax_forward((*model)(Variable(batch)).data());
    for (std::size_t i = 0; i < count; ++i) {
      const Tensor row = probabilities.select(0, static_cast<std::int64_t>(i));
      predictions.push_back({files[first + i], best_classes(row, checkpoint.class_names, options.top)});
    }
    first += count;
  }
  return predictions;
}

}  // namespace gyre
