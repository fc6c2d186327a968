#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace gyre {

/// Images in one sub-folder per class, decoded when asked for: u8 [3, H, W] RGB of any size.
/// Classes and files stand in byte order of their names ("1", "10", "2"). Taken are files whose extension, in
/// any case, is jpg, jpeg, png, webp, tif, tiff, bmp, ppm, pgm or pnm; other files and names that begin with
/// a dot are ignored.
class ImageFolder : public Dataset {
 public:
  /// FileError if the folder is missing, has no class folders, or some of them hold no picture (named).
  explicit ImageFolder(const std::filesystem::path& folder);
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  /// FileError naming the file if it cannot be decoded.
  Sample get(std::int64_t i) const override;
  std::int64_t label(std::int64_t i) const override { return file(i).label; }
  int channels() const override { return 3; }
  int image_size() const override { return 0; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string name() const override { return folder_.string(); }
  std::filesystem::path path(std::int64_t i) const;

 private:
  struct File {
    std::string name;
    std::int64_t label;
  };
  const File& file(std::int64_t i) const;

  std::filesystem::path folder_;
  std::vector<std::string> class_names_;
  std::vector<File> files_;
};

}  // namespace gyre
