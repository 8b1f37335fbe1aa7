// Writes results.h5 of the example experiment into the folder that is named, for the test of other readers.
#include "tests/experiments/results/example_run.hpp"

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    moelab::write_example_results(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
