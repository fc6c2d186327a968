#include "core/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef GYRE_THREAD_POOL
#include <condition_variable>
#endif

#include "core/error.h"

namespace gyre {
namespace {

thread_local bool serial = false;  // loops on this thread run serially
std::atomic<int> thread_count{0};  // 0: not chosen yet
std::atomic<bool> pinned{false};

/// The CPUs this process may use, taken before any pinning.
const cpu_set_t& allowed_cpus() {
  static const cpu_set_t cpus = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
    return set;
  }();
  return cpus;
}

int default_threads() {
  if (const char* text = std::getenv("GYRE_NUM_THREADS")) {
    const std::string_view digits = text;
    int count = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    require<ValueError>(error == std::errc() && end == digits.data() + digits.size() && count >= 1,
                        "GYRE_NUM_THREADS: expected a positive integer, got '{}'", digits);
    return count;
  }
  const int allowed = CPU_COUNT(&allowed_cpus());
  return std::max(1, allowed > 0 ? allowed : static_cast<int>(std::thread::hardware_concurrency()));
}

// OpenMP keeps its thread count per thread, and oneDNN reads it.
void tell_openmp([[maybe_unused]] int count) {
#ifdef _OPENMP
#ifdef GYRE_THREAD_POOL
  count = 1;
#endif
  thread_local int told = 0;
  if (std::exchange(told, count) != count) omp_set_num_threads(count);
#endif
}

void bind_this_thread(const cpu_set_t& cpus) {
  const int error = pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
  require(error == 0, "cannot bind a thread to its CPU: {}", std::generic_category().message(error));
}

// Runs one task, keeping the exception of the lowest task index.
class Tasks {
 public:
  Tasks(void (*body)(void*, int), void* context) : body_(body), context_(context) {}

  void run(int i) noexcept {
    const bool previous = std::exchange(serial, true);
    try {
      body_(context_, i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_ || i < index_) {
        error_ = std::current_exception();
        index_ = i;
      }
    }
    serial = previous;
  }

  void rethrow() {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void (*body_)(void*, int);
  void* context_;
  std::mutex mutex_;
  std::exception_ptr error_;
  int index_ = 0;
};

#ifdef GYRE_THREAD_POOL

// Workers of one calling thread: worker i runs task i, the caller runs task 0.
class ThreadPool {
 public:
  ~ThreadPool() { stop(); }

  void run(int tasks, int threads, Tasks& work) {
    if (static_cast<int>(workers_.size()) != threads - 1) start(threads - 1);
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      tasks_ = tasks;
      running_ = static_cast<int>(workers_.size());
      ++round_;
    }
    wake_.notify_all();
    for (int i = 0; i < tasks; i += threads) work.run(i);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  void start(int count) {
    stop();
    for (int i = 1; i <= count; ++i) {
      workers_.emplace_back([this, i, stride = count + 1, seen = round_] { loop(i, stride, seen); });
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      work_ = nullptr;
      ++round_;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }

  void loop(int index, int stride, std::uint64_t seen) {
    for (;;) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      if (work_ == nullptr) return;
      Tasks& work = *work_;
      const int tasks = tasks_;
      lock.unlock();
      for (int i = index; i < tasks; i += stride) work.run(i);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::uint64_t round_ = 0;  // guarded by mutex_, like all below
  Tasks* work_ = nullptr;
  int tasks_ = 0;
  int running_ = 0;
};

void run_on_threads(int tasks, int threads, Tasks& work) {
  thread_local ThreadPool pool;
  pool.run(tasks, threads, work);
}

#else

void run_on_threads(int tasks, int threads, Tasks& work) {
  // The team has all threads even for few tasks: libgomp ends the threads that a smaller team leaves over.
#pragma omp parallel num_threads(threads)
  {
    const int stride = omp_get_num_threads();
    for (int i = omp_get_thread_num(); i < tasks; i += stride) work.run(i);
  }
}

#endif

}  // namespace

int num_threads() {
  int count = thread_count.load(std::memory_order_relaxed);
  if (count == 0) {
    int expected = 0;
    count = default_threads();
    if (!thread_count.compare_exchange_strong(expected, count)) count = expected;
  }
  if (!serial) tell_openmp(count);
  return count;
}

void set_num_threads(int count) {
  require<ValueError>(count >= 1, "the number of threads must be at least 1, not {}", count);
  allowed_cpus();
  thread_count.store(count);
  if (!serial) tell_openmp(count);
  if (pinned && !serial) pin_threads();  // new threads inherit the mask of the thread that starts them
}

void pin_threads() {
  require(!in_parallel(), "pin_threads was called inside a parallel loop");
  std::vector<int> cpus;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed_cpus())) cpus.push_back(i);
  }
  require(!cpus.empty(), "cannot pin threads: the allowed CPUs are unknown");
  pinned = true;
  detail::run_tasks(
      num_threads(),
      [](void* list, int i) {
        const auto& choices = *static_cast<const std::vector<int>*>(list);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(choices[static_cast<std::size_t>(i) % choices.size()], &one);
        bind_this_thread(one);
      },
      &cpus);
}

bool threads_pinned() { return pinned; }

void unpin_this_thread() {
  if (pinned) bind_this_thread(allowed_cpus());
}

bool in_parallel() { return serial; }

SerialScope::SerialScope() : previous_(std::exchange(serial, true)) { tell_openmp(1); }

SerialScope::~SerialScope() {
  serial = previous_;
  const int count = thread_count.load(std::memory_order_relaxed);
  if (!serial && count > 0) tell_openmp(count);
}

namespace detail {

void run_tasks(int tasks, void (*body)(void*, int), void* context) {
  Tasks work(body, context);
  if (in_parallel()) {
    for (int i = 0; i < tasks; ++i) work.run(i);
  } else {
    run_on_threads(tasks, std::max(tasks, num_threads()), work);
  }
  work.rethrow();
}

}  // namespace detail
}  // namespace gyre
