#include "data/class_selection.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.h"
#include "core/words.h"

namespace gyre {

namespace {

class ClassSelection : public Subset {
 public:
  /// `labels[old]` is the new label, -1 for none.
  ClassSelection(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices,
                 std::vector<std::int64_t> labels, std::vector<std::string> names)
      : Subset(std::move(dataset), std::move(indices)),
        labels_(std::move(labels)),
        names_(std::move(names)) {}

  Sample get(std::int64_t i) const override {
    Sample sample = Subset::get(i);
    sample.label = labels_[static_cast<std::size_t>(sample.label)];
    return sample;
  }
  std::int64_t label(std::int64_t i) const override {
    return labels_[static_cast<std::size_t>(Subset::label(i))];
  }
  const std::vector<std::string>& class_names() const override { return names_; }

 private:
  std::vector<std::int64_t> labels_;
  std::vector<std::string> names_;
};

std::size_t find_class(const Dataset& dataset, const std::string& text) {
  const std::vector<std::string>& names = dataset.class_names();
  const auto named = std::find(names.begin(), names.end(), text);
  if (named != names.end()) return static_cast<std::size_t>(named - names.begin());
  std::size_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code == std::errc() && end == text.data() + text.size() && number < names.size()) return number;
  const auto near = nearest_word(text, names);
  throw ValueError(fmt::format("data.select: \"{}\" is not a class of {}, which has 0 ({}) to {} ({}){}",
                               text, dataset.name(), names.front(), names.size() - 1, names.back(),
                               near ? fmt::format("; did you mean {}?", *near) : ""));
}

}  // namespace

std::shared_ptr<const Dataset> select_classes(std::shared_ptr<const Dataset> dataset,
                                              std::span<const std::string> classes) {
  std::vector<std::int64_t> labels(dataset->class_names().size(), -1), indices;
  std::vector<std::string> names;
  for (const std::string& text : classes) {
    const std::size_t found = find_class(*dataset, text);
    const std::string& name = dataset->class_names()[found];
    require<ValueError>(labels[found] < 0, "data.select: class {} ({}) is given twice", found, name);
    labels[found] = static_cast<std::int64_t>(names.size());
    names.push_back(name);
  }
  for (std::int64_t i = 0; i < dataset->size(); ++i)
    if (labels[static_cast<std::size_t>(dataset->label(i))] >= 0) indices.push_back(i);
  require<ValueError>(!indices.empty(), "data.select: {} has no image of {}", dataset->name(),
                      fmt::join(names, ", "));
  return std::make_shared<ClassSelection>(std::move(dataset), std::move(indices), std::move(labels),
                                          std::move(names));
}

}  // namespace gyre
