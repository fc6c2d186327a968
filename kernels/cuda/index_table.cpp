#include "kernels/cuda/index_table.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <vector>

namespace gyre::kernels::cuda {
namespace {

constexpr std::size_t kept = 64;  // tables

struct Entry {
  std::uint64_t version;
  const void* data;
  std::int64_t count, columns;
  IndexTable table;
};

/// Positions by column, in order.
IndexTable build(const Tensor& index, std::int64_t m) {
  const Tensor host = index.to(Device::cpu());
  const auto* entries = host.data<std::int64_t>();
  std::vector<std::int64_t> starts(static_cast<std::size_t>(m + 1)),
      order(static_cast<std::size_t>(host.numel()));
  for (std::int64_t k = 0; k < host.numel(); ++k) ++starts[static_cast<std::size_t>(entries[k] + 1)];
  for (std::size_t j = 1; j < starts.size(); ++j) starts[j] += starts[j - 1];
  std::vector<std::int64_t> next = starts;
  for (std::int64_t k = 0; k < host.numel(); ++k)
    order[static_cast<std::size_t>(next[static_cast<std::size_t>(entries[k])]++)] = k;
  return {Tensor::from(starts, {m + 1}).to(index.device()),
          Tensor::from(order, {host.numel()}).to(index.device())};
}

}  // namespace

IndexTable index_table(const Tensor& index, std::int64_t m) {
  static std::mutex mutex;
  static std::list<Entry> entries;  // the latest first
  const std::scoped_lock lock(mutex);
  const auto known = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) {
    return e.version == index.version() && e.data == index.raw_data() && e.count == index.numel() &&
           e.columns == m;
  });
  if (known != entries.end()) {
    entries.splice(entries.begin(), entries, known);
    return known->table;
  }
  entries.push_front({index.version(), index.raw_data(), index.numel(), m, build(index, m)});
  if (entries.size() > kept) entries.pop_back();
  return entries.front().table;
}

}  // namespace gyre::kernels::cuda
