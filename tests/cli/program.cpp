#include "tests/cli/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace gyre {
namespace {

std::filesystem::path temporary_name() {
  static int count = 0;
  return std::filesystem::temp_directory_path() /
         ("gyre_cli_" + std::to_string(getpid()) + "_" + std::to_string(count++));
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void redirect(const char* path, int flags, int target) {
  const int file = open(path, flags, 0600);
  if (file < 0 || dup2(file, target) < 0) _exit(126);
  close(file);
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments, const Environment& environment,
                 const std::string& standard_output)
    : out_(standard_output.empty() ? temporary_name() : std::filesystem::path(standard_output)),
      err_(temporary_name()) {
  std::vector<std::string> words{GYRE_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  child_ = fork();
  if (child_ < 0) throw std::runtime_error("fork failed");
  if (child_ == 0) {
    redirect("/dev/null", O_RDONLY, 0);
    redirect(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 1);
    redirect(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 2);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execv(argv[0], argv.data());
    _exit(127);
  }
}

void Program::signal(int number) { kill(child_, number); }

Outcome Program::wait() {
  int status = 0;
  waitpid(child_, &status, 0);
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (std::filesystem::is_regular_file(out_)) {
    outcome.out = slurp(out_);
    std::filesystem::remove(out_);
  }
  outcome.err = slurp(err_);
  std::filesystem::remove(err_);
  return outcome;
}

Outcome run_gyre(const std::vector<std::string>& arguments, const Environment& environment,
                 const std::string& standard_output) {
  return Program(arguments, environment, standard_output).wait();
}

TemporaryFolder::TemporaryFolder() : path_(temporary_name()) { std::filesystem::create_directories(path_); }

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

std::string TemporaryFolder::write(const std::string& name, const std::string& bytes) const {
  const std::filesystem::path path = path_ / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

}  // namespace gyre
