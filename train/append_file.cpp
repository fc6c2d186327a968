#include "train/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace gyre {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what, int error) {
  throw FileError(fmt::format("{}: {}: {}", path.string(), what, std::generic_category().message(error)));
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path, bool fresh)
    : path_(std::move(path)),
      fd_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | (fresh ? O_EXCL : 0), 0666)) {
  if (fd_ < 0) fail(path_, "cannot write", errno);
}

AppendFile::~AppendFile() { ::close(fd_); }

bool AppendFile::empty() const {
  struct stat status {};
  return ::fstat(fd_, &status) == 0 && status.st_size == 0;
}

void AppendFile::append(std::string_view bytes) {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) fail(path_, "cannot write", errno);
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;
      // A torn record would spoil the one after it; if this fails too, reopening a run drops the tail.
      [[maybe_unused]] const int cut = ::ftruncate(fd_, status.st_size);
      fail(path_, "cannot write", error);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AppendFile::sync() {
  while (::fsync(fd_) != 0) {
    if (errno == EINTR) continue;
    if (errno == EINVAL || errno == EROFS) return;  // pipes and some file systems cannot sync
    fail(path_, "cannot sync", errno);
  }
}

}  // namespace gyre
