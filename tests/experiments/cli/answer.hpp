// What the program answers when a user calls it.
#pragma once

#include "core/file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstdlib>
#include <string>

#include <sys/wait.h>

namespace moelab {

// An experiment on a text of the package some-text.
inline const std::string kWithPackage =
    "version: 1\n"
    "data: {seq_len: 8, domains: [{name: a, path: a.txt, package: some-text}]}\n"
    "model: {d_model: 16, num_heads: 2, num_layers: 1, ffn: {activation: relu, d_ff: 8}}\n"
    "train: {max_steps: 1, batch_tokens: 8, optimizer: {lr: 1e-3}}\n";

struct Answer {
  int code = 0;
  std::string out, err;
};

// Runs the line of a shell in the folder, with $MOELAB set to the program.
inline Answer shell_in(const TemporaryFolder& folder, const std::string& line) {
  const TemporaryFolder answers;
  const std::string out = (answers.path() / "out").string(), err = (answers.path() / "err").string();
  const std::string command = "cd '" + folder.path().string() + "' && MOELAB='" MOELAB_BINARY "' && { " +
                              line + "\n} >'" + out + "' 2>'" + err + "' </dev/null";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), read_file(out), read_file(err)};
}

// Runs `moelab ARGUMENTS` in the folder.
inline Answer moelab_in(const TemporaryFolder& folder, const std::string& arguments) {
  return shell_in(folder, "\"$MOELAB\" " + arguments);
}

// A dense FFN on synthetic data, 10 steps.
inline const std::string kSmallExperiment =
    "version: 1\n"
    "data: {kind: synthetic, num_features: 16, num_targets: 16}\n"
    "model: {kind: ffn, d_model: 16, num_layers: 1, ffn: {activation: relu, d_ff: 32}}\n"
    "train: {max_steps: 10, batch_tokens: 32, optimizer: {lr: 1e-3}}\n";

}  // namespace moelab
