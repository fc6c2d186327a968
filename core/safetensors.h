#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/tensor.h"

namespace gyre {

using TensorMap = std::map<std::string, Tensor>;  ///< by name, in byte order
using Metadata = std::map<std::string, std::string>;

struct SafetensorsFile {
  TensorMap tensors;
  Metadata metadata;
};

/// Reads a whole safetensors file (header length u64 LE, JSON header, dense data). Refuses with FileError, naming file
/// and tensor: truncation, header longer than the file, overlapping or out-of-range offsets, duplicate names, unknown types,
/// sizes that do not match shapes. Allocates nothing larger than the file.
SafetensorsFile read_safetensors(const std::filesystem::path& path);
/// Writes dense copies; the bytes are a pure function of the arguments. Does not sync or rename: see write_file_atomically.
void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors, const Metadata& metadata = {});

}  // namespace gyre
