#pragma once

#include <memory>
#include <span>
#include <string>

#include "data/dataset.h"

namespace gyre {

/// The samples of some classes of another dataset, renumbered from 0 in the order in which `classes` lists
/// them: by name, or by number where no class has that name. ValueError naming data.select for an unknown
/// class, with the nearest known one, for one given twice, and where no sample is left.
std::shared_ptr<const Dataset> select_classes(std::shared_ptr<const Dataset> dataset,
                                              std::span<const std::string> classes);

}  // namespace gyre
