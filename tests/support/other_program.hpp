// A program that this process starts and that lives on.
#pragma once

#include "core/error.hpp"

#include <csignal>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace moelab {

class OtherProgram {
 public:
  // Returns when it is another program: what is closed on the way to that is closed.
  OtherProgram() {
    int ends[2];
    require(pipe2(ends, O_CLOEXEC) == 0, "[test] no pipe");
    child_ = fork();
    if (child_ == 0) {
      execlp("sleep", "sleep", "600", static_cast<char*>(nullptr));
      _exit(1);
    }
    close(ends[1]);
    char byte = 0;
    const bool closed = read(ends[0], &byte, 1) == 0;
    close(ends[0]);
    require(child_ > 0 && closed && lives(), "[test] no child");
  }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;
  ~OtherProgram() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  bool lives() const { return waitpid(child_, nullptr, WNOHANG) == 0; }

 private:
  pid_t child_ = -1;
};

}  // namespace moelab
