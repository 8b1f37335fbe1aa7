#include "tests/support/process.hpp"

#include "tests/support/catch.hpp"

#include <csignal>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace moelab {

pid_t start(const std::vector<std::string>& arguments, const StartOptions& options) {
  std::vector<std::string> words{options.program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables = options.environment;
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid > 0) return pid;
  const int null = ::open("/dev/null", O_RDWR);
  const int output = ::open(options.output.c_str(), O_WRONLY | O_CREAT, 0666);
  const int messages = ::open(options.messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  ::dup2(null, 0);
  ::dup2(output, 1);
  ::dup2(messages, 2);
  if (options.file_size_limit) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{*options.file_size_limit, *options.file_size_limit};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  for (std::string& variable : variables) ::putenv(variable.data());
  ::execv(argv.front(), argv.data());
  ::_exit(127);
}

int status_of(pid_t pid) {
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return status;
}

int exit_code_of(pid_t pid) {
  const int status = status_of(pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace moelab
