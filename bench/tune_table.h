#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/eq_choice.h"

namespace gyre {

/// What times were measured with; choices made from them hold where all of it agrees.
struct TuneKey {
  std::string gyre;                ///< version of the program
  std::string cpu, simd, library;  ///< library of dense products
  int threads = 0;
  bool operator==(const TuneKey&) const = default;
};
/// Of this process, with its thread count; `version` is the program's.
TuneKey this_tune_key(const std::string& version);

/// Milliseconds per call of one EQ-Linear layer, f32, medians.
struct TuneCell {
  std::string group;
  kernels::EqDirection direction = kernels::EqDirection::forward;
  std::int64_t rows = 1, channels_in = 1, channels_out = 1;
  double fused = 0, packed = 0, naive = 0;
};

struct TuneTable {
  TuneKey key;
  std::vector<TuneCell> cells;
};

/// JSON, one cell a line, with a CRC-32 of everything else.
std::string encode_tune_table(const TuneTable& table);
/// FileError that begins with `origin` for text that is truncated, damaged or of another format.
TuneTable decode_tune_table(const std::string& text, const std::string& origin);
/// FileError naming the first part of the key that differs from `key`.
void require_fit(const TuneTable& table, const TuneKey& key, const std::string& origin);
/// Eight hexadecimal digits; the same for the same cells and key.
std::string tune_table_id(const TuneTable& table);

/// The fastest implementation of each cell. The choice of the fixed rule stays where nothing else is faster
/// by more than 5 %, so that noise changes nothing.
std::shared_ptr<const kernels::EqTable> choices_of(const TuneTable& table);

}  // namespace gyre
