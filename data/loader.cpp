#include "data/loader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/parallel.h"

namespace gyre {

Loader::Loader(std::shared_ptr<const Dataset> dataset, Pipeline pipeline, Sampler sampler, std::uint64_t seed,
               int workers, int prefetch, HostMemory memory)
    : dataset_(std::move(dataset)),
      pipeline_(std::move(pipeline)),
      sampler_(sampler),
      seed_(seed),
      memory_(memory) {
  require<ValueError>(sampler_.size() == dataset_->size(), "sampler of {} samples for {} of {}",
                      sampler_.size(), dataset_->name(), dataset_->size());
  require<ValueError>(workers >= 0 && prefetch >= 1, "workers {}, prefetch {}; at least 0 and 1 are needed",
                      workers, prefetch);
  slots_.resize(workers == 0 ? 1 : static_cast<std::size_t>(prefetch));
  // Several claims per worker and batch even out samples that take unequal time.
  chunk_ = std::max<std::int64_t>(1, sampler_.batch_size() / (4 * std::max(1, workers)));
  try {
    for (int i = 0; i < workers; ++i) workers_.emplace_back([this] { work(); });
  } catch (...) {
    stop();
    throw;
  }
}

Loader::~Loader() { stop(); }

void Loader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    cancelled_ = true;
  }
  work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void Loader::start_epoch(std::int64_t epoch, std::int64_t first_step) {
  require<ValueError>(epoch >= 0 && first_step >= 0 && first_step <= sampler_.batches(),
                      "epoch {}, first step {} of {}", epoch, first_step, sampler_.batches());
  std::vector<std::int64_t> order = sampler_.order(epoch);
  {
    std::unique_lock lock(mutex_);
    cancelled_ = true;
    ready_.wait(lock, [this] { return busy_ == 0; });
    cancelled_ = false;
    order_ = std::move(order);
    epoch_ = epoch;
    next_ = filling_ = first_step;
    end_ = sampler_.batches();
    for (Slot& slot : slots_) slot = {};
  }
  work_.notify_all();
}

std::optional<Batch> Loader::next() {
  std::unique_lock lock(mutex_);
  if (next_ == end_) return std::nullopt;
  Slot& slot = slot_of(next_);
  if (workers_.empty()) {
    slot = {};
    open(slot, next_);
    for (std::int64_t i = 0; i < slot.batch.size(); ++i) fill(slot, i);
  } else {
    ready_.wait(lock, [&] { return filling_ > next_ && slot.done == slot.batch.size(); });
    if (slot.error) std::rethrow_exception(slot.error);
  }
  Batch batch = std::move(slot.batch);
  slot = {};
  ++next_;
  lock.unlock();
  work_.notify_all();
  return batch;
}

void Loader::open(Slot& slot, std::int64_t step) const {
  const auto [first, last] = sampler_.range(step);
  const Preprocessing& form = pipeline_.preprocessing();
  slot.batch.ids.assign(order_.begin() + first, order_.begin() + last);
  const auto empty = [this](const Shape& shape, DType dtype) {
    return memory_ == HostMemory::pinned ? Tensor::empty_pinned(shape, dtype) : Tensor::empty(shape, dtype);
  };
  slot.batch.images = empty({last - first, form.channels, form.size, form.size}, DType::f32);
  slot.batch.labels = empty({last - first}, DType::i64);
  slot.images = slot.batch.images.mutable_data<float>();
  slot.labels = slot.batch.labels.mutable_data<std::int64_t>();
}

void Loader::fill(const Slot& slot, std::int64_t position) const {
  const std::int64_t id = slot.batch.ids[static_cast<std::size_t>(position)];
  try {
    const Sample sample = dataset_->get(id);
    require<ValueError>(sample.label >= 0 && sample.label < dataset_->classes(),
                        "label {}; allowed are 0 to {}", sample.label, dataset_->classes() - 1);
    RandomStream stream(seed_, Purpose::augment, static_cast<std::uint64_t>(epoch_),
                        static_cast<std::uint64_t>(id));
    const std::int64_t size = pipeline_.slot_size();
    pipeline_(sample.image, stream, std::span(slot.images + position * size, static_cast<std::size_t>(size)));
    slot.labels[position] = sample.label;
  } catch (const FileError& error) {
    throw FileError(fmt::format("{} (sample {} of {})", error.what(), id, dataset_->name()));
  } catch (const std::exception& error) {
    throw Error(fmt::format("{} (sample {} of {})", error.what(), id, dataset_->name()));
  }
}

void Loader::work() {
  unpin_this_thread();
  const SerialScope serial;
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] {
      return stop_ ||
             (filling_ < end_ && filling_ < next_ + static_cast<std::int64_t>(slots_.size()) && !cancelled_);
    });
    if (stop_) return;
    Slot& slot = slot_of(filling_);
    try {
      if (slot.claimed == 0) open(slot, filling_);
    } catch (...) {
      slot = {};
      slot.error = std::current_exception();
    }
    const std::int64_t first = slot.claimed;
    const std::int64_t last = std::min(slot.batch.size(), first + chunk_);
    slot.claimed = last;
    if (last == slot.batch.size()) ++filling_;
    ++busy_;
    lock.unlock();

    std::exception_ptr error;
    std::int64_t i = first;
    try {
      for (; i < last && !cancelled_; ++i) fill(slot, i);
    } catch (...) {
      error = std::current_exception();
    }

    lock.lock();
    --busy_;
    slot.done += last - first;
    // The first failing sample of the batch is reported, whoever met it first.
    if (error && (!slot.error || i < slot.failed_at)) {
      slot.error = error;
      slot.failed_at = i;
    }
    if (slot.done == slot.batch.size() || busy_ == 0) ready_.notify_one();
  }
}

}  // namespace gyre
