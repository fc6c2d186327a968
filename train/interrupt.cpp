#include "train/interrupt.h"

#include <csignal>
#include <cstdlib>

namespace gyre {
namespace {

volatile std::sig_atomic_t signals = 0;
struct sigaction previous_int, previous_term;

void on_signal(int) {
  signals = signals + 1;
  if (signals > 1) std::_Exit(130);
}

}  // namespace

InterruptScope::InterruptScope() {
  signals = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &previous_int);
  sigaction(SIGTERM, &action, &previous_term);
}

InterruptScope::~InterruptScope() {
  sigaction(SIGINT, &previous_int, nullptr);
  sigaction(SIGTERM, &previous_term, nullptr);
}

bool InterruptScope::requested() const { return signals > 0; }

}  // namespace gyre
