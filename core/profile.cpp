#include "core/profile.h"

#include <algorithm>

#include "core/error.h"

namespace gyre {

namespace {

/// What the device failed with is told by the next call that waits for it.
void wait_quietly(Device device) noexcept {
  try {
    synchronize(device);
  } catch (const DeviceError&) {
  }
}

}  // namespace

Profile::Profile(Device device) : device_(device) {
  require(current == nullptr, "this thread already collects a profile");
  current = this;
}

Profile::~Profile() { current = nullptr; }

double Profile::seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

std::vector<Profile::Entry> Profile::entries() const {
  std::vector<Entry> sorted = entries_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Entry& a, const Entry& b) { return a.seconds > b.seconds; });
  return sorted;
}

void ProfileScope::enter(const char* name) {
  Profile::current->inside_ = true;
  wait_quietly(Profile::current->device_);
  name_ = name;
  start_ = Profile::Clock::now();
}

void ProfileScope::leave() {
  Profile* profile = Profile::current;
  if (profile == nullptr) return;
  wait_quietly(profile->device_);
  const double seconds = std::chrono::duration<double>(Profile::Clock::now() - start_).count();
  profile->inside_ = false;
  auto& entries = profile->entries_;
  auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.name == name_; });
  if (entry == entries.end()) entry = entries.insert(entry, {name_, 0, 0});
  ++entry->calls;
  entry->seconds += seconds;
}

}  // namespace gyre
