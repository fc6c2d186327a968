#pragma once

#include <string>

namespace gyre::cuda {

/// A shared library opened at run time and never closed: the program starts without it. Looked for where the
/// system looks, then in $CUDA_HOME/lib64 and in the toolkit that gyre was built with.
class Library {
 public:
  /// `file` is its name with the version, "libcublasLt.so.13"; throws DeviceError with the reasons.
  explicit Library(const std::string& file);

  /// The function of a header by its name: function<decltype(cublasLtCreate)>("cublasLtCreate"). Throws
  /// DeviceError.
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  std::string file_;
  void* handle_ = nullptr;
};

}  // namespace gyre::cuda
