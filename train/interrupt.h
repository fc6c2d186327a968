#pragma once

namespace gyre {

/// While alive, SIGINT and SIGTERM only raise a flag, so that a step can finish and be saved; a second signal
/// ends the process at once. The previous handlers come back.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  bool requested() const;
};

}  // namespace gyre
