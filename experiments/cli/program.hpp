// The whole program as a function, for a program of one's own that adds its kinds first:
//
//   int main(int argc, char** argv) {
//     moelab::moe::router_kinds().add({"mine", "one line of help", "source", [] { ... }});
//     return moelab::cli::run_program(argc, argv);
//   }
#pragma once

namespace moelab::cli {

// Runs the command line and gives the exit status. Prints to standard output and standard error.
int run_program(int argc, char** argv);

}  // namespace moelab::cli
