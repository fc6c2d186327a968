#include "kernels/cpu/scratch.h"

#include "core/poison.h"

namespace gyre::kernels::cpu {
namespace {

// A whole huge page: beside what other threads read, their processors would fetch lines of it ahead, and
// every write would have to call them back.
class Kept {
 public:
  ~Kept() {
    if (!data_) return;
    unhide(data_, huge_page);
    free_to_system(data_);
  }

  void* take(std::size_t bytes) {
    if (taken_ || bytes == 0 || bytes > huge_page) return nullptr;
    if (!data_) {
      data_ = allocate_from_system(huge_page);
      if (!data_) return nullptr;
      hide(data_, huge_page);
    }
    taken_ = true;
    unhide(data_, bytes);
    return data_;
  }
  void give() {
    taken_ = false;
    hide(data_, huge_page);
  }

 private:
  void* data_ = nullptr;
  bool taken_ = false;
};

thread_local Kept kept;

}  // namespace

void* take_kept_scratch(std::size_t bytes) { return kept.take(bytes); }
void give_kept_scratch() noexcept { kept.give(); }

}  // namespace gyre::kernels::cpu
