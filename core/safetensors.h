#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace gyre {

using TensorMap = std::map<std::string, Tensor>;  ///< by name, in byte order
using Metadata = std::map<std::string, std::string>;

struct SafetensorsFile {
  TensorMap tensors;
  Metadata metadata;
};

/// Reads a whole safetensors file (header length u64 LE, JSON header, dense data), each tensor straight into
/// memory of its own. Refuses with FileError, naming file and tensor: truncation, trailing bytes, a header
/// above 100 MB or longer than the file, gaps and overlaps, duplicate names, unknown types or keys, sizes
/// that do not match shapes. All is checked before the first tensor is allocated; nothing larger than the
/// file is.
SafetensorsFile read_safetensors(const std::filesystem::path& path);
/// The same from the bytes of a file; `name` stands for its path in errors.
SafetensorsFile decode_safetensors(std::string_view bytes, const std::string& name);
/// The bytes of a file: a pure function of the arguments, tensors made dense. Throws ValueError for an
/// undefined tensor, the name "__metadata__", or text that is not UTF-8.
std::string encode_safetensors(const TensorMap& tensors, const Metadata& metadata = {});
/// write_file of those bytes, in place; for a file that must be whole at every instant use
/// write_file_atomically.
void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const Metadata& metadata = {});

}  // namespace gyre
