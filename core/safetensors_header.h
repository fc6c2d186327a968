#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors.h"

namespace gyre {

/// One tensor of a safetensors header; its bytes are [begin, end) of the data.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  Metadata metadata;
};

/// Parses the JSON text; FileError beginning with `path` for anything that is not a well-formed header.
/// Checks each entry for itself (type, shape, size), not the entries against each other or the data.
SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& path);
/// The tensor's name as it may stand in an error: quoted, control characters escaped.
std::string quoted_name(const std::string& name);
/// "F32" for DType::f32, and so on.
std::string_view safetensors_type(DType dtype);

}  // namespace gyre
