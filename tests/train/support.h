#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/safetensors.h"
#include "tests/data/support.h"
#include "train/config.h"

namespace gyre::test {

inline constexpr int tiny_side = 8;
inline constexpr int tiny_classes = 4;

/// Brightness of the pattern of a class: four patterns that no quarter turn or mirror image confuses.
inline int tiny_pattern(int label, int row, int col) {
  const int border = std::min({row, col, tiny_side - 1 - row, tiny_side - 1 - col});
  switch (label) {
    case 0: return border >= 2 ? 200 : 40;                   // disc
    case 1: return border == 0 ? 220 : 30;                   // frame
    case 2: return (row / 2 + col / 2) % 2 == 0 ? 190 : 50;  // chessboard
    default: return row < 4 ? 210 : 40;                      // half
  }
}

/// Images and labels of one split in MNIST's layout: patterns under noise, each turned at random.
inline void write_tiny_split(const TempFolder& folder, const std::string& split, std::uint32_t count,
                             std::uint64_t seed, bool gzip) {
  std::string images, labels;
  RandomStream stream(seed, Purpose::test);
  for (std::uint32_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(stream.below(tiny_classes));
    const int turn = static_cast<int>(stream.below(4));
    labels += static_cast<char>(label);
    for (int y = 0; y < tiny_side; ++y) {
      for (int x = 0; x < tiny_side; ++x) {
        const int last = tiny_side - 1;
        const int row = turn == 0 ? y : turn == 1 ? x : turn == 2 ? last - y : last - x;
        const int col = turn == 0 ? x : turn == 1 ? last - y : turn == 2 ? last - x : y;
        const int noise = static_cast<int>(stream.below(71)) - 35;
        images += static_cast<char>(std::clamp(tiny_pattern(label, row, col) + noise, 0, 255));
      }
    }
  }
  std::string image_file = idx_bytes({count, tiny_side, tiny_side}, images);
  if (gzip) image_file = gzip_bytes(image_file);
  folder.write(split + "-images-idx3-ubyte" + (gzip ? ".gz" : ""), image_file);
  folder.write(split + "-labels-idx1-ubyte", idx_bytes({count}, labels));
}

/// A learnable dataset: images of 8 × 8 pixels in 4 classes.
inline void write_tiny_data(const TempFolder& folder, std::uint32_t train = 300, std::uint32_t test = 100) {
  write_tiny_split(folder, "train", train, 1, true);
  write_tiny_split(folder, "t10k", test, 2, false);
}

/// An equivariant model that learns write_tiny_data(path): 240 training images (60 held out), 12 updates per
/// epoch.
inline Config tiny_config(const std::filesystem::path& path) {
  Config config;
  config.model.name = "eq_vit";
  config.model.image_size = tiny_side;
  config.model.classes = tiny_classes;
  config.model.patch_size = 4;
  config.model.width = 16;
  config.model.depth = 2;
  config.model.heads = 2;
  config.model.mlp_ratio = 2;
  config.model.drop_path = 0.1;
  config.data.dataset = "idx";
  config.data.path = path.string();
  config.data.holdout = 60;
  config.data.pad_to = 0;
  config.data.workers = 1;
  config.data.augment.crop_padding = 1;
  config.data.augment.flip = true;
  config.optimizer.learning_rate = 1e-2;
  config.train.epochs = 3;
  config.train.batch_size = 20;
  config.train.ema_decay = 0.9;
  config.train.seed = 7;
  config.train.log_every = 5;
  config.train.threads = 2;
  return config;
}

/// Same names, shapes and bits.
inline ::testing::AssertionResult same_bits(const TensorMap& a, const TensorMap& b) {
  if (a.size() != b.size())
    return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " tensors";
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end()) return ::testing::AssertionFailure() << "no tensor " << name;
    const Tensor left = tensor.contiguous(), right = other->second.contiguous();
    if (left.shape() != right.shape() || left.dtype() != right.dtype())
      return ::testing::AssertionFailure() << name << ": " << left.str() << " and " << right.str();
    const std::size_t bytes = static_cast<std::size_t>(left.numel()) * size_of(left.dtype());
    if (std::memcmp(left.raw_data(), right.raw_data(), bytes) != 0)
      return ::testing::AssertionFailure() << name << " differs";
  }
  return ::testing::AssertionSuccess();
}

/// Copies that later updates leave alone.
inline TensorMap copy_of(const TensorMap& state) {
  TensorMap copies;
  for (const auto& [name, tensor] : state) copies[name] = tensor.clone();
  return copies;
}

/// Largest difference, relative to the largest magnitude of `expected`.
inline double relative_difference(const Tensor& actual, const Tensor& expected) {
  const std::vector<double> a = actual.to_vector(), b = expected.to_vector();
  double difference = 0, size = 1e-30;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double change = std::abs(a.at(i) - b[i]);
    difference = std::isnan(change) ? change : std::max(difference, change);
    size = std::max(size, std::abs(b[i]));
    if (std::isnan(difference)) break;
  }
  return difference / size;
}

}  // namespace gyre::test
