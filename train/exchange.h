#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/transform.h"

namespace gyre {

/// Weights of other programs in and out (docs/exchange.md).
struct ImportOptions {
  std::filesystem::path file;  ///< safetensors
  std::string model;           ///< a name or a YAML file; empty: what a file that gyre wrote says of itself
  std::vector<std::string> overrides;  ///< "model.key=value"
  std::string layout = "auto";         ///< auto | gyre | timm | released
  std::vector<double> mean, std;       ///< of values in [0, 1], per channel; empty: usual for the model
  std::filesystem::path classes;       ///< text file, a class name per line; empty: unknown names
  std::filesystem::path out;           ///< the checkpoint; empty: `file` without its ending
};

struct ImportResult {
  std::string model;
  std::string layout;
  std::filesystem::path checkpoint;
  std::int64_t tensors = 0, parameters = 0, classes = 0;
  Preprocessing preprocessing;
  std::vector<std::string> notes;  ///< what was converted, averaged or left out
};

/// Makes a checkpoint of a weights file. The head of the file decides the number of classes unless
/// model.classes is given. Errors name file and tensor; nothing is written then. FileError if `out` exists.
ImportResult import_checkpoint(const ImportOptions& options);

struct ExportOptions {
  std::filesystem::path checkpoint;  ///< or a run directory
  std::filesystem::path file;
  std::string layout = "gyre";  ///< gyre | timm | released
  std::string weights = "ema";  ///< ema | raw
};

struct ExportResult {
  std::string model;
  std::filesystem::path checkpoint;
  std::string weights;  ///< those written
  std::int64_t tensors = 0, parameters = 0, bytes = 0;
};

/// Writes the weights of a checkpoint as one safetensors file, whole or not at all. In every layout the file
/// also says what model it holds, so that importing it needs no more.
ExportResult export_checkpoint(const ExportOptions& options);

}  // namespace gyre
