#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gyre {

/// Random changes made to training images, in this order; all off by default.
struct AugmentConfig {
  int crop_padding = 0;        ///< shift by up to this many pixels each way, zeros come in
  bool flip = false;           ///< mirror left-right with probability 1/2
  bool quarter_turns = false;  ///< turn by 0°, 90°, 180° or 270°, equally likely
};

/// Where images come from and how they reach the model.
struct DataConfig {
  std::string dataset = "fashion_mnist";  ///< fashion_mnist | idx | image_folder
  std::string path;                 ///< folder; empty = /usr/share/datasets/fashion-mnist for fashion_mnist
  int classes = 0;                  ///< 0 = the dataset's own count
  std::vector<std::string> select;  ///< names or numbers of the classes to keep, in this order; empty: all
  std::int64_t holdout = 5000;      ///< images taken from the training set to choose the best checkpoint
  int image_size = 0;  ///< side that pictures are resized to; 0 = the dataset's own, for image_folder pad_to
  int pad_to = 32;     ///< side after symmetric zero padding; 0 = none; not for image_folder
  std::vector<double> mean, std;  ///< per channel, in [0, 1] units; empty = the dataset's own
  AugmentConfig augment;
  int workers = 2;               ///< loader threads; 0 = load on the training thread
  int prefetch = 4;              ///< batches prepared ahead, at least 1
  std::int64_t limit_train = 0;  ///< first N of the training set after the split; 0 = all
  std::int64_t limit_test = 0;   ///< first N of the test set; 0 = all
};

}  // namespace gyre
