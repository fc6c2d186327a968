#pragma once

#include <filesystem>
#include <string>

namespace gyre::cli {

/// Where `gyre tune` writes and every command looks: $XDG_CONFIG_HOME/gyre/tune.json, else
/// ~/.config/gyre/tune.json; empty where neither variable is set.
std::filesystem::path default_tune_table();

/// Takes kernels from a table: the file `named` if not empty, else that of the environment variable
/// GYRE_TUNE, else the default one if it exists; "none" stands for no table. A named table that is damaged or
/// was measured elsewhere throws FileError; the default one is left out with a warning. Call after the thread
/// count is set.
void load_tune_table(const std::string& named);

}  // namespace gyre::cli
