#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace gyre::kernels::cuda {

/// Where each column of a gather comes from, on the device of the index.
struct IndexTable {
  Tensor starts;  ///< i64 [m + 1]: column j is read by positions order[starts[j]] … order[starts[j + 1] - 1]
  Tensor order;   ///< i64 [K]
};
/// Of a dense index i64 [K] with entries in [0, m). The latest tables are kept, by the version of the index:
/// layers gather by the same one in every step, and a new one has to come to the host.
IndexTable index_table(const Tensor& index, std::int64_t m);

}  // namespace gyre::kernels::cuda
