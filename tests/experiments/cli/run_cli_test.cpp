// How `run` ends where it does not end well, as a user sees it.
#include "tests/experiments/cli/answer.hpp"

#include <algorithm>
#include <string>

#include <unistd.h>

using namespace moelab;

namespace {

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("A reader that has seen enough ends a command without a word") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment);
  REQUIRE(moelab_in(folder, "run e.yaml").code == 0);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(dup2(ends[1], 9) == 9);  // a shell knows descriptors of one digit
  for (const int end : ends) close(end);
  for (const char* arguments : {"run -q e.yaml --dry-run", "run -q e.yaml", "check e.yaml", "kinds", "--help",
                                "show runs/e/latest/results.h5"}) {
    INFO(arguments);
    const Answer answer = moelab_in(folder, std::string(arguments) + " >&9");
    CHECK(answer.code == 141);
    CHECK(answer.err == "");
  }
  close(9);
}
