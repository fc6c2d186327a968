#include "data/image_folder.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "data/decode.h"

namespace gyre {

namespace fs = std::filesystem;

namespace {

bool names_picture(const fs::path& file) {
  static constexpr std::array<std::string_view, 10> known{".jpg",  ".jpeg", ".png", ".webp", ".tif",
                                                          ".tiff", ".bmp",  ".ppm", ".pgm",  ".pnm"};
  std::string extension = file.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::find(known.begin(), known.end(), extension) != known.end();
}

/// Names inside `folder` that do not begin with a dot, in byte order: folders or else files of pictures.
std::vector<std::string> list(const fs::path& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code dangling;  // counts as a file, which fails by name when it is read
    const std::string name = it->path().filename().string();
    if (name.starts_with('.') || it->is_directory(dangling) != folders) continue;
    if (folders || names_picture(name)) names.push_back(name);
  }
  require<FileError>(!error, "{}: {}", folder.string(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

ImageFolder::ImageFolder(const fs::path& folder) : folder_(folder) {
  require_data_folder(folder);
  class_names_ = list(folder, true);
  require<FileError>(!class_names_.empty(), "{}: no class folders", folder.string());
  std::string empty;
  for (std::size_t label = 0; label < class_names_.size(); ++label) {
    const std::vector<std::string> names = list(folder / class_names_[label], false);
    if (names.empty()) empty += (empty.empty() ? "" : ", ") + class_names_[label];
    for (const std::string& name : names) files_.push_back({name, static_cast<std::int64_t>(label)});
  }
  require<FileError>(empty.empty(), "{}: class folders without images: {}", folder.string(), empty);
}

const ImageFolder::File& ImageFolder::file(std::int64_t i) const {
  require<ValueError>(i >= 0 && i < size(), "{}: sample {} of {}", name(), i, size());
  return files_[static_cast<std::size_t>(i)];
}

fs::path ImageFolder::path(std::int64_t i) const {
  const File& own = file(i);
  return folder_ / class_names_[static_cast<std::size_t>(own.label)] / own.name;
}

Sample ImageFolder::get(std::int64_t i) const { return {load_image(path(i)), label(i)}; }

}  // namespace gyre
