#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace gyre {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what, int error,
                       std::string_view more = "") {
  throw FileError(
      fmt::format("{}: {}: {}{}", path.string(), what, std::generic_category().message(error), more));
}

// Repeats a system call that a signal interrupted.
template <class F>
auto retry(F&& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

class Descriptor {
 public:
  /// `target` is the name in the error.
  Descriptor(const std::filesystem::path& path, int flags, const std::filesystem::path& target)
      : fd_(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); })) {
    if (fd_ < 0) fail(target, (flags & O_WRONLY) != 0 ? "cannot write" : "cannot open", errno);
  }
  explicit Descriptor(const std::filesystem::path& path, int flags = O_RDONLY)
      : Descriptor(path, flags, path) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool is_regular() const {
    struct stat status {};
    return ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  }
  /// 0 or the error; after EINTR Linux has closed the descriptor all the same.
  int close() { return ::close(std::exchange(fd_, -1)) == 0 || errno == EINTR ? 0 : errno; }
  /// 0 or the error; devices and some file systems cannot sync, which is no failure.
  int sync() const {
    return retry([&] { return ::fsync(fd_); }) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
  }

 private:
  int fd_;
};

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = retry([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (written < 0) return errno;
    if (written == 0) return EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// `target` is the name in the error.
void write_through(const std::filesystem::path& path, const std::filesystem::path& target,
                   std::string_view bytes) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC, target);
  const bool regular = file.is_regular();
  int error = write_all(file.get(), bytes);
  if (error == 0) error = file.sync();
  const int close_error = file.close();
  if (error == 0) error = close_error;
  if (error == 0) return;
  if (regular) ::unlink(path.c_str());  // never a device
  fail(target, "cannot write", error, fmt::format(" (needed {} bytes)", bytes.size()));
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const Descriptor file(path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, "cannot read", errno);
  // Pipes and files of /proc report no size, hence the spare room that finds the end.
  std::string bytes(static_cast<std::size_t>(status.st_size) + 4096, '\0');
  std::size_t size = 0;
  for (;;) {
    if (size == bytes.size()) bytes.resize(bytes.size() * 2);
    const ssize_t got = retry([&] { return ::read(file.get(), bytes.data() + size, bytes.size() - size); });
    if (got < 0) fail(path, "cannot read", errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  fd_ = retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd_ < 0) fail(path, "cannot open", errno);
  struct stat status {};
  const int error = ::fstat(fd_, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  ::close(fd_);
  if (error != 0) fail(path, "cannot read", error);
  throw FileError(fmt::format("{}: not a regular file", path.string()));
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::read_at(std::uint64_t offset, void* target, std::size_t bytes) const {
  auto* to = static_cast<char*>(target);
  while (bytes > 0) {
    const ssize_t got = retry([&] { return ::pread(fd_, to, bytes, static_cast<off_t>(offset)); });
    if (got < 0) fail(path_, "cannot read", errno);
    require<FileError>(got > 0, "{}: truncated: ends at byte {}, expected {} more", path_.string(), offset,
                       bytes);
    to += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  write_through(path, path, bytes);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  static std::atomic<unsigned> counter{0};
  std::filesystem::path temporary = path;
  temporary += fmt::format(".tmp-{}-{}", ::getpid(), counter++);
  write_through(temporary, path, bytes);
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail(path, "cannot replace", error);
  }
  sync_directory(path.has_parent_path() ? path.parent_path() : ".");
}

void sync_file(const std::filesystem::path& path) {
  const Descriptor file(path);
  if (const int error = file.sync()) fail(path, "cannot sync", error);
}

void sync_directory(const std::filesystem::path& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY);
  if (const int error = folder.sync()) fail(path, "cannot sync", error);
}

}  // namespace gyre
