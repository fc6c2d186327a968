#include "core/deterministic.h"

#include <atomic>

namespace gyre {
namespace {

std::atomic<bool> required = true;

}  // namespace

void set_deterministic(bool on) { required = on; }
bool deterministic() { return required; }

}  // namespace gyre
