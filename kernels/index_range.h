#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace gyre::kernels {

/// An entry of an index that is out of range.
struct OutsideEntry {
  std::int64_t position, value;
};
/// The first entry of a dense i64 index outside [0, m), if any. On CUDA the entries come to the host, which
/// waits for the device; of the latest indices it is remembered that they fit.
std::optional<OutsideEntry> first_outside(const Tensor& index, std::int64_t m);

}  // namespace gyre::kernels
