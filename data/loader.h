#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/dataset.h"
#include "data/sampler.h"
#include "data/transform.h"

namespace gyre {

/// Model input, f32 [B, channels, size, size], labels, i64 [B], and dataset indices of B samples.
struct Batch {
  Tensor images;
  Tensor labels;
  std::vector<std::int64_t> ids;
  std::int64_t size() const { return static_cast<std::int64_t>(ids.size()); }
};

/// Prepares batches ahead on threads of its own. The batches are the same, bit for bit, for any number of
/// workers: randomness is RandomStream(seed, Purpose::augment, epoch, sample index). Called from one thread.
class Loader {
 public:
  /// `workers` = 0 prepares each batch inside next(). Images and labels lie in `memory`: pinned for
  /// cuda::upload. ValueError if sampler and dataset differ in size.
  Loader(std::shared_ptr<const Dataset> dataset, Pipeline pipeline, Sampler sampler, std::uint64_t seed,
         int workers = 2, int prefetch = 4, HostMemory memory = HostMemory::plain);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Begins an epoch at `first_step`, giving up whatever is left of the one before.
  void start_epoch(std::int64_t epoch, std::int64_t first_step = 0);
  /// The next batch in order; nothing after the last. Rethrows a worker's error, with the sample's index
  /// added, when the batch is due, and again on every later call in this epoch.
  std::optional<Batch> next();

  const Sampler& sampler() const { return sampler_; }

 private:
  /// A batch being filled.
  struct Slot {
    Batch batch;
    float* images = nullptr;
    std::int64_t* labels = nullptr;
    std::int64_t claimed = 0, done = 0;
    std::int64_t failed_at = 0;
    std::exception_ptr error;
  };

  void open(Slot& slot, std::int64_t step) const;
  void fill(const Slot& slot, std::int64_t position) const;
  void work();
  void stop();
  Slot& slot_of(std::int64_t step) { return slots_[static_cast<std::size_t>(step) % slots_.size()]; }

  std::shared_ptr<const Dataset> dataset_;
  Pipeline pipeline_;
  Sampler sampler_;
  std::uint64_t seed_;
  HostMemory memory_;

  std::mutex mutex_;
  std::condition_variable work_, ready_;
  std::vector<Slot> slots_;          // ring, by step
  std::vector<std::int64_t> order_;  // of the current epoch
  std::int64_t epoch_ = 0;
  std::int64_t next_ = 0;     // step that next() returns
  std::int64_t filling_ = 0;  // step whose samples are being claimed
  std::int64_t end_ = 0;
  std::int64_t chunk_ = 1;  // samples claimed at a time
  int busy_ = 0;            // workers outside the lock
  bool stop_ = false;
  std::atomic<bool> cancelled_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace gyre
