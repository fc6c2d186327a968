#include "kernels/cpu/scratch.h"

#include <memory>
#include <new>

namespace gyre::kernels::cpu {
namespace {

struct FreeAligned {
  void operator()(float* p) const { ::operator delete[](p, std::align_val_t(64)); }
};

}  // namespace

float* thread_scratch(std::int64_t count) {
  thread_local std::unique_ptr<float[], FreeAligned> memory;
  thread_local std::int64_t size = 0;
  if (count > size) {
    memory.reset();
    size = 0;
    memory.reset(static_cast<float*>(
        ::operator new[](static_cast<std::size_t>(count) * sizeof(float), std::align_val_t(64))));
    size = count;
  }
  return memory.get();
}

}  // namespace gyre::kernels::cpu
