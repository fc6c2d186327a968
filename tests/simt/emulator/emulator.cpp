#include "tests/simt/emulator/emulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/simt/emulator/fiber.h"

/// "softmax.cu:40".
template <>
struct fmt::formatter<gyre::simt::Site> : fmt::formatter<std::string_view> {
  auto format(const gyre::simt::Site& site, fmt::format_context& context) const {
    const std::string_view path = site.file;
    return fmt::format_to(context.out(), "{}:{}", path.substr(path.find_last_of('/') + 1), site.line);
  }
};

namespace gyre::simt {
namespace {

constexpr std::size_t max_threads = 1024, max_shared = 227 * 1024;

struct Copy {
  void* to;
  const void* from;
  std::size_t size;
  bool valid;
  std::uint32_t group;
};

struct ThreadState {
  Fiber* fiber = nullptr;
  bool done = false, at_barrier = false, in_collective = false;
  std::uint32_t groups = 0;  // committed
  std::vector<Copy> copies;  // not waited for
};

struct WarpState {
  unsigned arrived = 0, at_barrier = 0, done = 0;
  std::uint32_t exchanges = 0, barriers = 0;
  const char* what = nullptr;
  Site site{};
};

// One of each: kernels run one at a time.
std::array<Thread, max_threads> threads;
std::array<ThreadState, max_threads> states;
std::array<WarpState, max_threads / warp_size> warps;
std::array<std::array<std::array<Slot, warp_size>, 2>, max_threads / warp_size> slots;

bool same(Site a, Site b) { return a.line == b.line && std::string_view(a.file) == b.file; }

Range range(const GuardedPages& pages) { return {pages.data(), pages.data() + pages.size()}; }

class Machine {
 public:
  void configure(const Options& options) {
    const std::lock_guard lock(mutex_);
    options_ = options;
    random_ = options.seed;
  }

  void launch(const char* name, const Call& call, Index grid, unsigned block, std::size_t shared_bytes);
  void work();
  /// Leaves nothing on the stack of the thread that would have to be destroyed.
  template <class... A>
  [[noreturn]] void fail(Rule rule, fmt::format_string<A...> what, A&&... arguments) {
    record(rule, fmt::format(what, std::forward<A>(arguments)...));
    while (true) state().fiber->suspend();
  }
  void wait_for_block(Site site);
  const Slot* exchange(const char* what, Site site, const void* value, std::size_t size);
  void copy_async(Copy copy, Site site, const void* caller);
  void copy_wait(std::uint32_t pending, const void* caller);

  unsigned own() const { return static_cast<unsigned>(current - threads.data()); }
  ThreadState& state() { return states[own()]; }
  unsigned char* shared() const { return arena_.data() + arena_.size() - (shared_bytes_ + 15) / 16 * 16; }
  void require_aligned(const void* address, std::size_t alignment, Site site) {
    if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0)
      fail(Rule::misaligned, "uses an address that is no multiple of {} at {}", alignment, site);
  }
  Checker* checker = nullptr;
  std::uint64_t copies_begun = 0, launches = 0;

 private:
  static void perform(const Copy& copy) {
    if (copy.valid)
      std::memcpy(copy.to, copy.from, copy.size);
    else
      std::memset(copy.to, 0, copy.size);
  }
  void record(Rule rule, const std::string& what);
  void run_block(Index index, Index grid);
  std::optional<unsigned> take();
  void enter(unsigned thread, const Fiber& fiber);
  void finish();
  std::uint64_t random() {  // splitmix64
    std::uint64_t z = random_ += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
  }

  std::mutex mutex_;
  Options options_;
  std::uint64_t random_ = 0;
  GuardedPages arena_{max_shared};
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::deque<unsigned> ready_;
  std::optional<unsigned> handed_;
  std::optional<std::pair<Rule, std::string>> fault_;

  const char* name_ = nullptr;
  Call call_{};
  unsigned size_ = 0;  // threads of the block
  std::size_t shared_bytes_ = 0;
  std::uint32_t block_ = 0, barriers_ = 0;
  unsigned waiting_ = 0, done_ = 0;
  Site barrier_site_{};
};

Machine& machine() {
  static Machine only;
  return only;
}

void Machine::launch(const char* name, const Call& call, Index grid, unsigned block,
                     std::size_t shared_bytes) {
  const std::lock_guard lock(mutex_);
  name_ = name;
  call_ = call;
  size_ = block;
  shared_bytes_ = shared_bytes;
  const std::size_t count = static_cast<std::size_t>(grid.x) * grid.y * grid.z;
  running.arena = range(arena_);
  running.shared = {shared(), shared() + shared_bytes_};
  if (checker != nullptr) checker->begin_launch(block_ + 1, call);
  std::vector<std::size_t> order(options_.schedule == Schedule::random ? count : 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t at = random() % (i + 1);
    order[i] = order[at];
    order[at] = i;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t b = !order.empty() ? order[i] : options_.schedule == Schedule::lifo ? count - 1 - i : i;
    run_block({static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
               static_cast<unsigned>(b / grid.x / grid.y)},
              grid);
  }
}

void Machine::run_block(Index index, Index grid) {
  ++block_;
  barriers_ = waiting_ = done_ = 0;
  std::memset(shared(), 0xFF, shared_bytes_);
  std::fill_n(warps.begin(), size_ / warp_size, WarpState());
  ready_.clear();
  for (unsigned i = 0; i < size_; ++i) {
    threads[i] = {{i, 0, 0}, index, {size_, 1, 1}, grid};
    states[i].fiber = nullptr;
    states[i].done = states[i].at_barrier = states[i].in_collective = false;
    states[i].groups = 0;
    states[i].copies.clear();
    ready_.push_back(i);
  }
  while (const auto next = handed_ ? std::exchange(handed_, std::nullopt) : take()) {
    Fiber*& fiber = states[*next].fiber;
    if (fiber == nullptr) {
      if (idle_.empty()) {
        fibers_.push_back(std::make_unique<Fiber>([] { machine().work(); }));
        idle_.push_back(fibers_.back().get());
      }
      fiber = idle_.back();
      idle_.pop_back();
    }
    enter(*next, *fiber);
    fiber->resume();
    current = nullptr;
    running.moment.block = 0;
    if (fault_) {
      fibers_.clear();
      idle_.clear();
      const auto [rule, what] = *std::exchange(fault_, std::nullopt);
      throw Fault(rule, what);
    }
  }
}

void Machine::enter(unsigned thread, const Fiber& fiber) {
  current = &threads[thread];
  running.moment = {block_, barriers_, warps[thread / warp_size].barriers, thread};
  running.stack = range(fiber.stack());
}

/// The thread that runs next.
std::optional<unsigned> Machine::take() {
  if (ready_.empty()) return std::nullopt;
  if (options_.schedule == Schedule::random) std::swap(ready_[random() % ready_.size()], ready_.front());
  const bool last = options_.schedule == Schedule::lifo;
  const unsigned next = last ? ready_.back() : ready_.front();
  if (last)
    ready_.pop_back();
  else
    ready_.pop_front();
  return next;
}

/// What a fiber does: one thread after the other, as long as the next one has not begun elsewhere.
void Machine::work() {
  while (true) {
    call_.run(call_.object);
    finish();
    Fiber* const fiber = state().fiber;
    handed_ = take();
    if (handed_ && states[*handed_].fiber == nullptr) {
      states[*handed_].fiber = fiber;
      enter(*handed_, *fiber);
      handed_.reset();
    } else {
      idle_.push_back(fiber);
      fiber->suspend();
    }
  }
}

void Machine::finish() {
  ThreadState& own_state = state();
  if (!own_state.copies.empty())
    fail(Rule::outstanding_copy, "returns before it waits for its cp.async copies");
  WarpState& warp = warps[own() / warp_size];
  if (warp.arrived > 0)
    fail(Rule::divergent_collective, "returns while lanes of its warp are in {} at {}", warp.what, warp.site);
  if (waiting_ > 0) fail(Rule::early_return, "returns while threads wait at the barrier {}", barrier_site_);
  own_state.done = true;
  ++warp.done;
  ++done_;
}

void Machine::record(Rule rule, const std::string& what) {
  const Index block = current->block;
  fault_.emplace(rule, fmt::format("{}: {}: thread {} of block ({}, {}, {}) {}", name_, name_of(rule), own(),
                                   block.x, block.y, block.z, what));
}

void Machine::wait_for_block(Site site) {
  WarpState& warp = warps[own() / warp_size];
  if (warp.arrived > 0)
    fail(Rule::divergent_collective, "waits at the barrier {} while lanes of its warp are in {} at {}", site,
         warp.what, warp.site);
  if (done_ > 0)
    fail(Rule::early_return, "waits at the barrier {}, but {} threads have returned", site, done_);
  if (waiting_ > 0 && !same(site, barrier_site_))
    fail(Rule::divergent_barrier, "waits at the barrier {}, others at {}", site, barrier_site_);
  barrier_site_ = site;
  if (++waiting_ < size_) {
    ++warp.at_barrier;
    state().fiber->suspend();
    return;
  }
  waiting_ = 0;
  running.moment.barriers = ++barriers_;
  for (unsigned i = 0; i < size_; ++i)
    if (i != own()) ready_.push_back(i);
  for (unsigned i = 0; i < size_ / warp_size; ++i) warps[i].at_barrier = 0;
}

const Slot* Machine::exchange(const char* what, Site site, const void* value, std::size_t size) {
  const unsigned number = own() / warp_size, lane = own() % warp_size;
  WarpState& warp = warps[number];
  if (warp.done > 0)
    fail(Rule::divergent_collective, "is in {} at {}, but {} lanes have returned", what, site, warp.done);
  if (warp.at_barrier > 0)
    fail(Rule::divergent_collective, "is in {} at {} while lanes of its warp wait at the barrier {}", what,
         site, barrier_site_);
  if (warp.arrived > 0 && (!same(site, warp.site) || std::string_view(what) != warp.what))
    fail(Rule::divergent_collective, "is in {} at {}, other lanes in {} at {}", what, site, warp.what,
         warp.site);
  warp.what = what;
  warp.site = site;
  // Two sets in turn: a lane still reads the last one while others begin the next.
  auto& given = slots[number][warp.exchanges % 2];
  if (size > 0) std::memcpy(given[lane].bytes, value, size);
  if (++warp.arrived < warp_size) {
    state().fiber->suspend();
    return given.data();
  }
  warp.arrived = 0;
  ++warp.exchanges;
  if (std::string_view(what) == "sync_warp") running.moment.warp_barriers = ++warp.barriers;
  for (unsigned i = 0; i < warp_size; ++i)
    if (i != lane) ready_.push_back(number * warp_size + i);
  return given.data();
}

void Machine::copy_async(Copy copy, Site site, const void* caller) {
  require_aligned(copy.to, copy.size, site);
  require_aligned(copy.from, copy.size, site);
  if (!running.shared.holds(copy.to, copy.size))
    fail(Rule::out_of_bounds, "copies to byte {} of {} of shared memory at {}",
         static_cast<unsigned char*>(copy.to) - shared(), shared_bytes_, site);
  if (checker != nullptr) checker->begin_copy(copy.to, copy.from, copy.size, copy.valid, caller);
  if (options_.copies == Copies::at_once)
    perform(copy);
  else
    std::memset(copy.to, 0xFF, copy.size);
  ++copies_begun;
  copy.group = state().groups;
  state().copies.push_back(copy);
}

void Machine::copy_wait(std::uint32_t pending, const void* caller) {
  ThreadState& own_state = state();
  std::vector<Copy>& copies = own_state.copies;
  const auto finished = [&](const Copy& copy) { return copy.group + pending < own_state.groups; };
  const auto end = std::find_if_not(copies.begin(), copies.end(), finished);
  for (auto copy = copies.begin(); copy != end; ++copy) {
    if (checker != nullptr) checker->end_copy(copy->to, copy->from, copy->size, copy->valid, caller);
    if (options_.copies == Copies::deferred) perform(*copy);
  }
  copies.erase(copies.begin(), end);
}

}  // namespace

const Thread* current = nullptr;
Running running;

void* shared_memory() { return machine().shared(); }
void barrier(Site site) { machine().wait_for_block(site); }
void warp_barrier(Site site) { machine().exchange("sync_warp", site, nullptr, 0); }
const Slot* exchange(const char* what, Site site, const void* value, std::size_t size) {
  return machine().exchange(what, site, value, size);
}
void copy_async(void* shared, const void* global, std::size_t size, bool valid, Site site) {
  machine().copy_async({shared, global, size, valid, 0}, site, __builtin_return_address(0));
}
void copy_commit() { ++machine().state().groups; }
void copy_wait(int pending) {
  machine().copy_wait(static_cast<std::uint32_t>(pending), __builtin_return_address(0));
}
void note_atomic(const void* address, std::size_t size, Site site) {
  machine().require_aligned(address, size, site);
  if (machine().checker != nullptr) machine().checker->atomic(address, size, __builtin_return_address(0));
}
void require_aligned(const void* address, std::size_t alignment, Site site) {
  machine().require_aligned(address, alignment, site);
}
void launch(const char* name, Call call, Index grid, unsigned block, std::size_t shared_bytes) {
  ++machine().launches;
  machine().launch(name, call, grid, block, shared_bytes);
}

void configure(const Options& options) { machine().configure(options); }
std::uint64_t copies_begun() { return machine().copies_begun; }
std::uint64_t launches() { return machine().launches; }
void install(Checker* checker) { machine().checker = checker; }
void add_buffer(const void* begin, std::size_t size, bool initialised) {
  if (machine().checker != nullptr) machine().checker->add_buffer(begin, size, initialised);
}
void remove_buffer(const void* begin) {
  if (machine().checker != nullptr) machine().checker->remove_buffer(begin);
}
void fail(Rule rule, const std::string& what) { machine().fail(rule, "{}", what); }

const char* name_of(Rule rule) {
  switch (rule) {
    case Rule::divergent_barrier: return "divergent barrier";
    case Rule::divergent_collective: return "divergent collective";
    case Rule::early_return: return "early return";
    case Rule::outstanding_copy: return "outstanding copy";
    case Rule::misaligned: return "misaligned access";
    case Rule::out_of_bounds: return "out of bounds";
    case Rule::race: return "race";
    case Rule::race_across_blocks: return "race across blocks";
    case Rule::uninitialised_shared: return "uninitialised shared memory";
    case Rule::uninitialised_global: return "uninitialised global memory";
    case Rule::unfinished_copy: return "unfinished copy";
  }
  return "";
}

}  // namespace gyre::simt
