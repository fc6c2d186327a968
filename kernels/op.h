#pragma once

#include <utility>

#include "core/device.h"
#include "core/error.h"
#include "core/profile.h"

/// The CUDA implementation of an Op; nullptr in builds without CUDA.
#ifdef GYRE_WITH_CUDA
#define GYRE_CUDA_OP(function) function
#else
#define GYRE_CUDA_OP(function) nullptr
#endif

namespace gyre::kernels {

/// One operation: its name and one implementation per device. Shapes and types are checked by the caller,
/// once for all.
template <class... Args>
class Op {
 public:
  using Function = void (*)(Args...);
  constexpr Op(const char* name, Function cpu, Function cuda = nullptr)
      : name_(name), cpu_(cpu), cuda_(cuda) {}

  const char* name() const { return name_; }
  /// Runs the implementation of `device`; throws DeviceError naming both if there is none.
  template <class... Given>
  void operator()(Device device, Given&&... args) const {
    const Function function = device.is_cuda() ? cuda_ : cpu_;
    require<DeviceError>(function != nullptr, "{} has no {} implementation", name_,
                         device.is_cuda() ? "CUDA" : "CPU");
    const ProfileScope scope(name_);
    function(std::forward<Given>(args)...);
  }

 private:
  const char* name_;
  Function cpu_, cuda_;
};

}  // namespace gyre::kernels
