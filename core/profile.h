#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/device.h"

namespace gyre {

/// Time by operation, collected on the thread that made it while it lives; one at a time. An operation within
/// another counts as the outer one. Without a Profile an operation pays one load and one branch.
class Profile {
 public:
  struct Entry {
    std::string name;
    std::int64_t calls = 0;
    double seconds = 0;
  };

  /// `device`: waited for around each operation, so that its time is the device's too.
  explicit Profile(Device device = {});
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Since construction.
  double seconds() const;
  /// Longest first.
  std::vector<Entry> entries() const;

 private:
  friend class ProfileScope;
  using Clock = std::chrono::steady_clock;

  Device device_;
  Clock::time_point begin_ = Clock::now();
  std::vector<Entry> entries_;
  bool inside_ = false;
  static inline constinit thread_local Profile* current = nullptr;
};

/// One call of the operation `name` (a string that outlives the profile), from here to the end of the scope.
class ProfileScope {
 public:
  explicit ProfileScope(const char* name) {
    if (Profile::current != nullptr && !Profile::current->inside_) [[unlikely]]
      enter(name);
  }
  ~ProfileScope() {
    if (name_ != nullptr) [[unlikely]]
      leave();
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  void enter(const char* name);
  void leave();

  const char* name_ = nullptr;
  Profile::Clock::time_point start_;
};

}  // namespace gyre
