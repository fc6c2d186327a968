#include "kernels/cpu/scratch.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#endif

namespace gyre::kernels::cpu {
namespace {

// A whole huge page: beside what other threads read, their processors would fetch lines of it ahead, and
// every write would have to call them back.
class Kept {
 public:
  ~Kept() {
    if (!data_) return;
    ASAN_UNPOISON_MEMORY_REGION(data_, huge_page);
    free_to_system(data_);
  }

  void* take(std::size_t bytes) {
    if (taken_ || bytes == 0 || bytes > huge_page) return nullptr;
    if (!data_) data_ = static_cast<char*>(allocate_from_system(huge_page));
    if (!data_) return nullptr;
    taken_ = true;
    ASAN_UNPOISON_MEMORY_REGION(data_, bytes);
    ASAN_POISON_MEMORY_REGION(data_ + bytes, huge_page - bytes);
    return data_;
  }
  void give() { taken_ = false; }

 private:
  char* data_ = nullptr;
  bool taken_ = false;
};

thread_local Kept kept;

}  // namespace

void* take_kept_scratch(std::size_t bytes) { return kept.take(bytes); }
void give_kept_scratch() noexcept { kept.give(); }

}  // namespace gyre::kernels::cpu
