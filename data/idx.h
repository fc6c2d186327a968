#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace gyre {

/// Images of an IDX file (plain or gzip, told apart by content) as u8 [count, height, width].
/// FileError for anything but a whole IDX file of unsigned bytes in three dimensions.
Tensor read_idx_images(const std::filesystem::path& path);
/// Labels likewise, as u8 [count].
Tensor read_idx_labels(const std::filesystem::path& path);

/// `stem` + "-idxR-ubyte" or ".idxR-ubyte", R the rank, with or without ".gz"; FileError naming what was
/// tried.
std::filesystem::path find_idx_file(const std::filesystem::path& folder, std::string_view stem, int rank);

/// One split of a folder in MNIST's layout, held in memory: 1 channel, images as stored.
class IdxDataset : public Dataset {
 public:
  /// `split` is "train" or "t10k". `classes` = 0 takes the length of `class_names`, or if that is empty the
  /// highest label + 1. Classes without a name are called by their number. FileError as above, for counts
  /// that differ, and for a label out of range (file, index, label, allowed range).
  IdxDataset(const std::filesystem::path& folder, std::string_view split, std::string name = "idx",
             int classes = 0, std::vector<std::string> class_names = {});
  std::int64_t size() const override { return images_.size(0); }
  Sample get(std::int64_t i) const override;
  std::int64_t label(std::int64_t i) const override;
  int channels() const override { return 1; }
  int image_size() const override;
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string name() const override { return name_; }

 private:
  Tensor images_;
  Tensor labels_;
  std::string name_;
  std::vector<std::string> class_names_;
};

}  // namespace gyre
