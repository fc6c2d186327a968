#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace gyre {

/// Base of every error that gyre throws; the text is one line that names the offending values.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shapes that do not fit the operation.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A data type that the operation does not take.
class DTypeError : public Error {
 public:
  using Error::Error;
};

/// A device that is missing or lacks the operation.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// Too little memory on a device; nothing was changed.
class OutOfMemoryError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// A value outside its documented range, in code or configuration.
class ValueError : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, damaged or cannot be written; the text begins with its path.
class FileError : public Error {
 public:
  using Error::Error;
};

/// Throws `E` with the formatted text unless `condition` holds.
template <class E = Error, class... Args>
void require(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) [[unlikely]]
    throw E(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace gyre
