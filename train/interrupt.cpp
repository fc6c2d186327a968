#include "train/interrupt.h"

#include <array>
#include <csignal>
#include <cstdlib>

namespace gyre {
namespace {

volatile std::sig_atomic_t signals = 0;
constexpr std::array handled{SIGINT, SIGTERM, SIGHUP};
std::array<struct sigaction, handled.size()> previous;
struct sigaction previous_pipe;

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
  for (std::size_t i = 0; i < handled.size(); ++i) sigaction(handled[i], &action, &previous[i]);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, &previous_pipe);
}

InterruptScope::~InterruptScope() {
  for (std::size_t i = 0; i < handled.size(); ++i) sigaction(handled[i], &previous[i], nullptr);
  sigaction(SIGPIPE, &previous_pipe, nullptr);
}

bool InterruptScope::requested() const { return signals > 0; }

}  // namespace gyre
