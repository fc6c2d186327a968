#pragma once

namespace gyre {

/// While alive, SIGINT, SIGTERM and SIGHUP only raise a flag, so that a step can finish and be saved, and a
/// reader that went away (SIGPIPE) does not end the process; a second signal ends the process at once. The
/// previous handlers come back.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  bool requested() const;
};

}  // namespace gyre
