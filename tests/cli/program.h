#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace gyre {

/// What a run of the program left behind.
struct Outcome {
  int code = -1;  ///< exit code; 128 + N for signal N
  std::string out, err;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

/// The program gyre, started with `arguments`; standard input is empty.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments, const Environment& environment = {},
                   const std::string& standard_output = "");
  Outcome wait();
  void signal(int number);
  pid_t id() const { return child_; }

 private:
  pid_t child_;
  std::filesystem::path out_, err_;
};

/// Runs to the end.
Outcome run_gyre(const std::vector<std::string>& arguments, const Environment& environment = {},
                 const std::string& standard_output = "");

/// A folder of the test's own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path path_;
};

}  // namespace gyre
