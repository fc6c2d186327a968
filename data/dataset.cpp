#include "data/dataset.h"

#include <algorithm>
#include <numeric>
#include <system_error>

#include "core/error.h"
#include "core/random.h"

namespace gyre {

Subset::Subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices)
    : dataset_(std::move(dataset)), indices_(std::move(indices)) {
  for (const std::int64_t i : indices_)
    require<ValueError>(i >= 0 && i < dataset_->size(), "{}: index {} of a subset; allowed are 0 to {}",
                        dataset_->name(), i, dataset_->size() - 1);
}

Sample Subset::get(std::int64_t i) const { return dataset_->get(index(i)); }

std::int64_t Subset::label(std::int64_t i) const { return dataset_->label(index(i)); }

std::int64_t Subset::index(std::int64_t i) const {
  require<ValueError>(i >= 0 && i < size(), "{}: sample {} of a subset of {}", name(), i, size());
  return indices_[static_cast<std::size_t>(i)];
}

std::pair<std::shared_ptr<const Dataset>, std::shared_ptr<const Dataset>> split_holdout(
    std::shared_ptr<const Dataset> dataset, std::int64_t count, std::uint64_t seed) {
  require<ValueError>(count >= 0 && count < dataset->size(),
                      "data.holdout: {} of {} training images; allowed are 0 to {}", count, dataset->size(),
                      dataset->size() - 1);
  std::vector<std::int64_t> held = RandomStream(seed, Purpose::split).permutation(dataset->size());
  std::vector<std::int64_t> rest(held.begin() + count, held.end());
  held.resize(static_cast<std::size_t>(count));
  std::sort(held.begin(), held.end());
  std::sort(rest.begin(), rest.end());
  return {std::make_shared<Subset>(dataset, std::move(rest)),
          std::make_shared<Subset>(dataset, std::move(held))};
}

std::shared_ptr<const Dataset> take_first(std::shared_ptr<const Dataset> dataset, std::int64_t count) {
  require<ValueError>(count >= 0, "limit {} of a dataset is negative", count);
  if (count == 0 || count >= dataset->size()) return dataset;
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return std::make_shared<Subset>(std::move(dataset), std::move(indices));
}

void require_data_folder(const std::filesystem::path& folder) {
  using Type = std::filesystem::file_type;
  std::error_code error;
  const Type type = std::filesystem::status(folder, error).type();
  if (type == Type::directory) return;
  const std::string reason = type == Type::not_found ? "no such folder"
                             : type == Type::none    ? error.message()
                                                     : "not a folder";
  throw FileError(
      fmt::format("{}: {} (data.path; give another with --set data.path=DIR or, for eval, --data DIR)",
                  folder.string(), reason));
}

}  // namespace gyre
