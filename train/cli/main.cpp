#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "train/cli/command.h"

namespace {

/// A file opened while a standard stream is closed would take its number, and then what is printed.
bool open_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) == -1 && errno == EBADF && ::open("/dev/null", O_RDWR) != number)
      return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (!open_standard_streams()) return gyre::cli::failure;
  return gyre::cli::run_program(argc, argv);
}
