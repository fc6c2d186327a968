#include "core/cuda/copy.h"
#include "core/cuda/runtime.h"
#include "core/error.h"

namespace gyre::cuda {
namespace {

[[noreturn]] void fail(int index = 0) {
  throw DeviceError(fmt::format("cuda:{} is not available: built without CUDA", index));
}

}  // namespace

std::string unavailable_reason(int) { return "built without CUDA"; }
int device_count() { return 0; }
bool emulated() { return false; }
DeviceInfo device_info(int index) { fail(index); }

void* compute_stream(int index) { fail(index); }
void* copy_stream(int index) { fail(index); }
void synchronize(int index) { fail(index); }
void synchronize(void*) { fail(); }

void* allocate(std::size_t bytes, int index, void*) {
  throw DeviceError(fmt::format("cannot allocate {} bytes on cuda:{}: built without CUDA", bytes, index));
}
void deallocate(void*, std::size_t, int) noexcept {}
MemoryStats memory_stats(int index) { fail(index); }
void reset_peak_memory(int index) { fail(index); }
void release_cached_memory(int index) { fail(index); }

void* pinned_allocate(std::size_t bytes) { return pool_allocate(bytes); }
void pinned_deallocate(void* data, std::size_t bytes) noexcept { pool_free(data, bytes); }
void copy_async(void*, const void*, std::size_t, void*) { fail(); }

Event::Event(int index, bool) { fail(index); }
Event::~Event() = default;
Event& Event::operator=(Event&&) noexcept = default;
void Event::record(void*) { fail(); }
void Event::hold(void*) const { fail(); }
bool Event::done() const { fail(); }
void Event::synchronize() const { fail(); }
double Event::since(const Event&) const { fail(); }

void strided_copy(int index, const Shape&, void*, DType, const Shape&, const void*, DType, const Shape&) {
  fail(index);
}
void strided_fill(int index, const Shape&, void*, DType, const Shape&, double) { fail(index); }

}  // namespace gyre::cuda
