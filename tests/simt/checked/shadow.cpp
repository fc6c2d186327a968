#include "tests/simt/checked/shadow.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

// First and last byte of the program, set by the linker.
extern "C" {
extern const unsigned char __executable_start[];  // NOLINT
extern const unsigned char end[];
}

namespace gyre::simt {
namespace {

const Range program{__executable_start,
                    end};  // its constants; what kernels know of the emulator stands there too

enum class Relation { ordered, concurrent, other_block };

bool same_warp(const Stamp& stamp, const Moment& now) {
  return stamp.thread / warp_size == now.thread / warp_size;
}

Relation relation(const Stamp& before, const Moment& now, std::uint32_t first_block) {
  if (before.block < first_block) return Relation::ordered;
  if (before.by == Stamp::By::blocks || before.block != now.block) return Relation::other_block;
  if (before.barriers != now.barriers) return Relation::ordered;
  if (before.by == Stamp::By::warps || !same_warp(before, now)) return Relation::concurrent;
  if (before.warp_barriers != now.warp_barriers) return Relation::ordered;
  const bool own = before.by == Stamp::By::thread && before.thread == now.thread;
  return own ? Relation::ordered : Relation::concurrent;
}

Stamp stamp_of(const Moment& now, const void* caller) {
  return {now.block,         now.barriers, now.warp_barriers, static_cast<std::uint16_t>(now.thread),
          Stamp::By::thread, caller};
}

/// Those of `before` that a later access may still collide with, and now this one.
Stamp joined(const Stamp& before, const Moment& now, const void* caller, std::uint32_t first_block) {
  Stamp stamp = stamp_of(now, caller);
  switch (relation(before, now, first_block)) {
    case Relation::ordered: break;
    case Relation::other_block: stamp.by = Stamp::By::blocks; break;
    case Relation::concurrent: {
      const bool lanes = before.by != Stamp::By::warps && same_warp(before, now);
      stamp.by = lanes ? Stamp::By::lanes : Stamp::By::warps;
    }
  }
  return stamp;
}

/// In the arena or on the page without access behind it.
bool near_shared(const void* address) {
  return Range{running.arena.begin, running.arena.end + 4096}.holds(address, 1);
}

const char* verb(Access kind) {
  switch (kind) {
    case Access::read: return "reads";
    case Access::write: return "writes";
    case Access::atomic: return "adds to";
  }
  return "";
}

}  // namespace

Region::Region(const Range& bytes, std::uint32_t initialised)
    : bytes_(bytes), cells_((static_cast<std::size_t>(bytes.end - bytes.begin) + granule_ - 1) / granule_) {
  for (Cell& cell : cells_) cell.initialised = initialised;
}

std::span<Cell> Region::cells(const void* address, std::size_t size) {
  const auto offset = static_cast<std::size_t>(static_cast<const unsigned char*>(address) - bytes_.begin);
  while ((offset | size) % granule_ != 0) refine(granule_ / 2);
  return {cells_.data() + offset / granule_, size / granule_};
}

void Region::refine(std::size_t granule) {
  std::vector<Cell> finer(cells_.size() * (granule_ / granule));
  for (std::size_t i = 0; i < finer.size(); ++i) finer[i] = cells_[i / (granule_ / granule)];
  cells_ = std::move(finer);
  granule_ = granule;
}

void Shadow::begin_launch(std::uint32_t first_block, const Call& call) {
  first_block_ = first_block;
  const auto* const object = static_cast<const unsigned char*>(call.object);
  arguments_ = {object, object + call.size};
}

void Shadow::add_buffer(const void* begin, std::size_t size, bool initialised) {
  const auto* const first = static_cast<const unsigned char*>(begin);
  latest_ = nullptr;
  buffers_.insert_or_assign(first, Region({first, first + size}, initialised ? 1 : 0));
}

void Shadow::remove_buffer(const void* begin) {
  latest_ = nullptr;
  buffers_.erase(static_cast<const unsigned char*>(begin));
}

Region* Shadow::global(const void* address, std::size_t size) {
  if (latest_ != nullptr && latest_->bytes().holds(address, size)) return latest_;
  auto after = buffers_.upper_bound(static_cast<const unsigned char*>(address));
  if (after == buffers_.begin() || !std::prev(after)->second.bytes().holds(address, size)) return nullptr;
  return latest_ = &std::prev(after)->second;
}

void Shadow::access(const void* address, std::size_t size, Access kind, const void* caller) {
  if (running.stack.holds(address, 1) || (kind == Access::read && program.holds(address, size))) return;
  if (running.shared.holds(address, size)) {
    if (!shared_) shared_.emplace(running.arena, 0);
    touch(*shared_, true, address, size, kind, caller);
  } else if (Region* const region = global(address, size); region != nullptr) {
    touch(*region, false, address, size, kind, caller);
  } else if (!(kind == Access::read && arguments_.holds(address, size))) {
    fail(Rule::out_of_bounds, describe(address, size, kind, caller));
  }
}

void Shadow::touch(Region& region, bool shared, const void* address, std::size_t size, Access kind,
                   const void* caller) {
  const Moment& now = running.moment;
  const std::uint32_t since = shared ? now.block : first_block_;
  const auto require = [&](const Stamp& before, const char* what) {
    const Relation found = relation(before, now, since);
    if (found == Relation::ordered) [[likely]]
      return;
    const char* const by = before.by == Stamp::By::thread ? "thread" : "among others thread";
    fail(found == Relation::other_block ? Rule::race_across_blocks : Rule::race,
         fmt::format("{}, which {} {} of {} block {} at {}", describe(address, size, kind, caller), by,
                     before.thread, found == Relation::other_block ? "another" : "this", what,
                     line_of(before.caller)));
  };
  for (Cell& cell : region.cells(address, size)) {
    if (cell.in_flight == now.block)
      fail(Rule::unfinished_copy,
           fmt::format("{}, where a copy begun at {} is not waited for",
                       describe(address, size, kind, caller), line_of(cell.write.caller)));
    require(cell.write, "wrote");
    if (kind != Access::atomic) require(cell.atomic, "added to");
    if (kind != Access::read) require(cell.read, "read");

    const bool initialised = shared ? cell.initialised == now.block : cell.initialised != 0;
    if (kind != Access::write && !initialised)
      fail(shared ? Rule::uninitialised_shared : Rule::uninitialised_global,
           describe(address, size, kind, caller));
    switch (kind) {
      case Access::read: cell.read = joined(cell.read, now, caller, since); break;
      case Access::atomic: cell.atomic = joined(cell.atomic, now, caller, since); break;
      case Access::write:
        cell.write = stamp_of(now, caller);
        cell.initialised = now.block;
        break;
    }
  }
}

void Shadow::atomic(const void* address, std::size_t size, const void* caller) {
  access(address, size, Access::atomic, caller);
}

void Shadow::begin_copy(const void* to, const void* from, std::size_t size, bool valid, const void* caller) {
  if (valid) access(from, size, Access::read, caller);
  access(to, size, Access::write, caller);
  for (Cell& cell : shared_->cells(to, size)) cell.in_flight = running.moment.block;
}

void Shadow::end_copy(const void* to, const void* from, std::size_t size, bool valid, const void* caller) {
  if (valid) access(from, size, Access::read, caller);
  for (Cell& cell : shared_->cells(to, size)) cell.in_flight = 0;
  access(to, size, Access::write, caller);
}

/// "writes 4 bytes of shared memory at byte 128 of 256 at layer_norm.cu:57".
std::string Shadow::describe(const void* address, std::size_t size, Access kind, const void* caller) const {
  const auto* const first = static_cast<const unsigned char*>(address);
  std::string where;
  if (near_shared(first)) {
    where = fmt::format("at byte {} of {} of shared memory", first - running.shared.begin,
                        running.shared.end - running.shared.begin);
  } else {
    // The nearest buffer below or above.
    std::ptrdiff_t least = 1 << 20;
    where = fmt::format("at {}, far from any buffer", address);
    for (const auto& [begin, region] : buffers_) {
      const std::ptrdiff_t offset = first - begin, size_of = region.bytes().end - begin,
                           beyond = offset - size_of;
      const std::ptrdiff_t distance = std::max(-offset, beyond);
      if (distance >= least) continue;
      least = distance;
      where = fmt::format("at byte {} of a buffer of {}", offset, size_of);
    }
  }
  return fmt::format("{} {} bytes {} in {}", verb(kind), size, where, line_of(caller));
}

}  // namespace gyre::simt
