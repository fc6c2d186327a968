#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "train/checkpoint.h"

namespace gyre {

/// CRC-32 as zlib computes it (polynomial 0xEDB88320).
std::uint32_t crc32_of(std::string_view bytes);

struct FileRecord {
  std::size_t bytes = 0;
  std::uint32_t crc32 = 0;
};
using FileRecords = std::map<std::string, FileRecord>;  ///< by file name

/// trainer.json: everything of `checkpoint` except tensors, the records of the tensor files, and a CRC-32 of
/// its own. Doubles read back bit for bit; NaN and infinities are the texts "nan", "inf", "-inf".
std::string encode_trainer_json(const Checkpoint& checkpoint, const FileRecords& files);
/// Fills all of `checkpoint` except tensors. FileError that begins with `origin` for text that is truncated,
/// damaged or of another format.
FileRecords decode_trainer_json(const std::string& text, const std::string& origin, Checkpoint& checkpoint);

/// What a weights file says about itself: format, kind ("raw", "ema"), model section as YAML, group,
/// preprocessing and class names as JSON, updates, grid of patches, class token, and the parent of a
/// fine-tuned model.
Metadata weights_metadata(const Checkpoint& checkpoint, const std::string& kind);
/// Fills model, preprocessing and class names from it; false if the metadata is not of gyre. FileError that
/// begins with `origin` for what cannot be read.
bool read_weights_metadata(const Metadata& metadata, const std::string& origin, Checkpoint& checkpoint);

}  // namespace gyre
