// The program in a process of its own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace moelab {

struct StartOptions {
  std::filesystem::path program = MOELAB_BINARY;
  std::vector<std::string> environment;          // NAME=value, besides the variables of this process
  std::filesystem::path output = "/dev/null";    // where stdout goes
  std::filesystem::path messages = "/dev/null";  // where stderr goes
  std::optional<std::uint64_t> file_size_limit;  // bytes; a write beyond it fails, as on a full disk
};

// Starts `PROGRAM ARGUMENTS`.
pid_t start(const std::vector<std::string>& arguments, const StartOptions& options = {});

// Waits for its end: the status as waitpid gives it.
int status_of(pid_t pid);
// The same, as an exit code; -1 where a signal ended it.
int exit_code_of(pid_t pid);

}  // namespace moelab
