#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>

#include <unistd.h>

#include "tests/simt/checked/shadow.h"

extern "C" {
extern const unsigned char __executable_start[];  // NOLINT: set by the linker
}

namespace gyre::simt {

std::string line_of(const void* caller) {
  const auto offset =
      static_cast<std::size_t>(static_cast<const unsigned char*>(caller) - __executable_start) - 1;
  const std::string command = fmt::format("addr2line -i -e /proc/{}/exe {:#x} 2>/dev/null", getpid(), offset);
  struct Close {
    void operator()(std::FILE* file) const { pclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> pipe(popen(command.c_str(), "r"));
  std::string innermost;
  // The innermost line comes first; that of the kernel says more than one of prim.cuh.
  for (std::array<char, 1024> line{}; pipe && std::fgets(line.data(), line.size(), pipe.get()) != nullptr;) {
    std::string_view place = line.data();
    place = place.substr(place.find_last_of('/') + 1);
    place = place.substr(0, place.find_first_of(" \n"));
    if (innermost.empty()) innermost = place;
    if (place.find(".cu:") != place.npos) return std::string(place);
  }
  return innermost.empty() || innermost.front() == '?' ? fmt::format("{}", caller) : innermost;
}

}  // namespace gyre::simt
