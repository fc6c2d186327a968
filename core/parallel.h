#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace gyre {

/// Threads that parallel loops use; the same count gives the same results, bit for bit.
int num_threads();
void set_num_threads(int count);
/// Binds the loop threads to one core each. Off by default: ctest and several ranks share a machine.
void pin_threads();
bool threads_pinned();
/// Undoes pinning for the calling thread: for loader workers, which must not sit on a compute core alone.
void unpin_this_thread();
/// Inside a parallel loop, where further loops run serially.
bool in_parallel();

/// Makes loops on this thread serial while alive.
class SerialScope {
 public:
  SerialScope();
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  bool previous_;
};

namespace detail {
/// Runs body(context, i) for i in [0, tasks), each on its own thread; rethrows the first exception.
void run_tasks(int tasks, void (*body)(void*, int), void* context);
}  // namespace detail

/// Splits [begin, end) into at most num_threads() equal ranges of at least `grain` and calls f(first, last)
/// on each.
template <class F>
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, F&& f) {
  const std::int64_t count = end - begin;
  if (count <= 0) return;
  const std::int64_t most = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, grain));
  const int tasks = in_parallel() ? 1 : static_cast<int>(std::min<std::int64_t>(num_threads(), most));
  if (tasks == 1) {
    f(begin, end);
    return;
  }
  struct Context {
    std::remove_reference_t<F>* f;
    std::int64_t begin, count;
    int tasks;
  } context{&f, begin, count, tasks};
  detail::run_tasks(
      tasks,
      [](void* p, int i) {
        auto& c = *static_cast<Context*>(p);
        const std::int64_t first = c.begin + c.count * i / c.tasks;
        const std::int64_t last = c.begin + c.count * (i + 1) / c.tasks;
        (*c.f)(first, last);
      },
      &context);
}

}  // namespace gyre
