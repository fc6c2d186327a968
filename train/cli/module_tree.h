#pragma once

#include <string>

#include "layers/module.h"

namespace gyre::cli {

/// The layers below `root`, one line each, with their parameters' count and shapes; neighbours of the same
/// text share one ("blocks.0 … 11").
std::string module_tree(Module& root);

}  // namespace gyre::cli
