#include "tests/simt/emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/fiber.hpp>
#include <new>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace gyre::simt {
namespace {

namespace context = boost::context;

constexpr std::size_t stack_bytes = 128 * 1024;

// The stack outlives what Boost keeps on it.
struct KeptStack {
  void deallocate(context::stack_context&) {}
};

// AddressSanitizer follows a switch that is announced on both sides.
void leave([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* bottom,
           [[maybe_unused]] std::size_t size) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(fake_stack, bottom, size);
#endif
}
void arrive([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** from,
            [[maybe_unused]] std::size_t* from_size) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake_stack, from, from_size);
#endif
}

}  // namespace

struct Fiber::Context {
  GuardedPages stack{stack_bytes};
  context::fiber host;
  void* host_fake = nullptr;
  const void* host_bottom = nullptr;
  std::size_t host_size = 0;
  void* own_fake = nullptr;
  // Never destroyed: the destructor of a Boost fiber unwinds it.
  alignas(context::fiber) unsigned char own_storage[sizeof(context::fiber)];

  context::fiber& own() { return *std::launder(reinterpret_cast<context::fiber*>(own_storage)); }
};

Fiber::Fiber(void (*entry)()) : context_(std::make_unique<Context>()) {
  Context& c = *context_;
  context::stack_context stack;
  stack.size = c.stack.size();
  stack.sp = c.stack.data() + c.stack.size();
  const auto body = [&c, entry](context::fiber&& host) {
    arrive(nullptr, &c.host_bottom, &c.host_size);
    c.host = std::move(host);
    entry();
    return std::move(c.host);
  };
  new (c.own_storage) context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack),
                                     KeptStack(), body);
}

Fiber::~Fiber() = default;

void Fiber::resume() {
  Context& c = *context_;
  leave(&c.host_fake, c.stack.data(), c.stack.size());
  context::fiber next = std::move(c.own()).resume();
  arrive(c.host_fake, nullptr, nullptr);
  c.own() = std::move(next);
}

void Fiber::suspend() {
  Context& c = *context_;
  leave(&c.own_fake, c.host_bottom, c.host_size);
  c.host = std::move(c.host).resume();
  arrive(c.own_fake, &c.host_bottom, &c.host_size);
}

const GuardedPages& Fiber::stack() const { return context_->stack; }

GuardedPages::GuardedPages(std::size_t size) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  size_ = (size + page - 1) / page * page;
  void* const all =
      mmap(nullptr, size_ + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<unsigned char*>(all) + page;
  if (size_ > 0 && mprotect(data_, size_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

GuardedPages::~GuardedPages() {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(data_, size_);  // an abandoned stack leaves marks of its variables
#endif
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  munmap(data_ - page, size_ + 2 * page);
}

}  // namespace gyre::simt
