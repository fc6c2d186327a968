#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace gyre {

/// One image, u8 [channels, height, width], and its class.
struct Sample {
  Tensor image;
  std::int64_t label = 0;
};

/// A numbered set of labelled images. All members are safe to call from several threads.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// Sample `i` of 0..size()-1. The image may be a view of shared memory: read only.
  virtual Sample get(std::int64_t i) const = 0;
  /// The class of sample `i`; sets of files know it without reading the image.
  virtual std::int64_t label(std::int64_t i) const { return get(i).label; }
  virtual int channels() const = 0;
  /// Side of the images if all are squares of one size, else 0.
  virtual int image_size() const = 0;
  /// Index = label.
  virtual const std::vector<std::string>& class_names() const = 0;
  virtual std::string name() const = 0;
  std::int64_t classes() const { return static_cast<std::int64_t>(class_names().size()); }
};

/// The samples of another dataset at given indices, renumbered from 0.
class Subset : public Dataset {
 public:
  /// Throws ValueError for an index outside the dataset.
  Subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices);
  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  Sample get(std::int64_t i) const override;
  std::int64_t label(std::int64_t i) const override;
  int channels() const override { return dataset_->channels(); }
  int image_size() const override { return dataset_->image_size(); }
  const std::vector<std::string>& class_names() const override { return dataset_->class_names(); }
  std::string name() const override { return dataset_->name(); }
  const std::vector<std::int64_t>& indices() const { return indices_; }

 private:
  std::int64_t index(std::int64_t i) const;

  std::shared_ptr<const Dataset> dataset_;
  std::vector<std::int64_t> indices_;
};

/// {the rest, `count` samples chosen by (seed, Purpose::split)}, both in the dataset's order.
/// Throws ValueError unless 0 ≤ count < size.
std::pair<std::shared_ptr<const Dataset>, std::shared_ptr<const Dataset>> split_holdout(
    std::shared_ptr<const Dataset> dataset, std::int64_t count, std::uint64_t seed);
/// The first `count` samples; the dataset itself if count is 0 or reaches its size.
std::shared_ptr<const Dataset> take_first(std::shared_ptr<const Dataset> dataset, std::int64_t count);

/// FileError naming data.path unless `folder` is a folder.
void require_data_folder(const std::filesystem::path& folder);

}  // namespace gyre
