#include "data/splits.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "data/class_selection.h"
#include "data/fashion_mnist.h"
#include "data/idx.h"
#include "data/image_folder.h"

namespace gyre {

namespace fs = std::filesystem;

namespace {

using Pair = std::pair<std::shared_ptr<const Dataset>, std::shared_ptr<const Dataset>>;

Pair open_idx(const DataConfig& config) {
  require<ValueError>(!config.path.empty(), "data.path must name the folder of the IDX files");
  auto train = std::make_shared<IdxDataset>(config.path, "train", config.path, config.classes);
  // The training set decides the classes, so that a test set without the last class still fits.
  auto test =
      std::make_shared<IdxDataset>(config.path, "t10k", config.path, static_cast<int>(train->classes()));
  return {train, test};
}

Pair open_folders(const DataConfig& config) {
  require<ValueError>(!config.path.empty(), "data.path must name the folder that holds train and val");
  const fs::path root = config.path;
  require_data_folder(root);
  std::error_code ignored;
  const char* second =
      !fs::exists(root / "val", ignored) && fs::exists(root / "test", ignored) ? "test" : "val";
  auto train = std::make_shared<ImageFolder>(root / "train");
  auto test = std::make_shared<ImageFolder>(root / second);
  require<ValueError>(config.classes == 0 || config.classes == train->classes(),
                      "data.classes {}, but {} has {} class folders", config.classes, train->name(),
                      train->classes());
  const auto& a = train->class_names();
  const auto& b = test->class_names();
  std::vector<std::string> unmatched;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(unmatched));
  if (!unmatched.empty()) {
    const bool in_train = std::binary_search(a.begin(), a.end(), unmatched[0]);
    throw FileError(fmt::format("{}: {} class folder {}, which {} {}", test->name(),
                                in_train ? "lacks" : "has", unmatched[0], train->name(),
                                in_train ? "has" : "lacks"));
  }
  return {train, test};
}

Preprocessing preprocessing_of(const DataConfig& config, const Dataset& data) {
  const bool folders = config.dataset == "image_folder";
  Preprocessing form;
  form.channels = data.channels();
  form.native_size = config.image_size ? config.image_size : folders ? config.pad_to : data.image_size();
  require<ValueError>(form.native_size > 0, "data.image_size must be set: {} has no common square size",
                      data.name());
  form.size = folders || config.pad_to == 0 ? form.native_size : config.pad_to;
  const bool fashion = config.dataset == "fashion_mnist";
  using List = std::vector<double>;
  form.mean = !config.mean.empty() ? config.mean
              : folders            ? List{0.485, 0.456, 0.406}
                                   : List{fashion ? 0.2860 : 0.5};
  form.std = !config.std.empty() ? config.std
             : folders           ? List{0.229, 0.224, 0.225}
                                 : List{fashion ? 0.3530 : 0.5};
  require<ValueError>(form.size >= form.native_size && (form.size - form.native_size) % 2 == 0,
                      "data.pad_to: images of side {} cannot be padded evenly to {}", form.native_size,
                      form.size);
  try {
    form.check();
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("data.{}", error.what()));  // begins with mean or std
  }
  return form;
}

}  // namespace

DataSplits open_data(const DataConfig& config, std::uint64_t seed) {
  Pair sets;
  if (config.dataset == "fashion_mnist")
    sets = {open_fashion_mnist(config.path, "train", config.classes),
            open_fashion_mnist(config.path, "t10k", config.classes)};
  else if (config.dataset == "idx")
    sets = open_idx(config);
  else if (config.dataset == "image_folder")
    sets = open_folders(config);
  else
    throw ValueError(
        fmt::format("data.dataset \"{}\"; allowed are fashion_mnist, idx and image_folder", config.dataset));

  if (!config.select.empty())
    sets = {select_classes(sets.first, config.select), select_classes(sets.second, config.select)};

  DataSplits splits;
  splits.preprocessing = preprocessing_of(config, *sets.first);
  splits.train = sets.first;
  if (config.holdout != 0)
    std::tie(splits.train, splits.holdout) = split_holdout(sets.first, config.holdout, seed);
  splits.train = take_first(splits.train, config.limit_train);
  splits.test = take_first(sets.second, config.limit_test);
  return splits;
}

}  // namespace gyre
