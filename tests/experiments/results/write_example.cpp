// Writes results.h5 of the example experiment into the folder that is named, for the tests of other readers;
// with a second argument "tensorboard" also its event files. With "study", "sweep" or "hostile" that file
// instead.
#include "experiments/results/export.hpp"
#include "tests/experiments/results/example_run.hpp"

#include <cstdio>
#include <exception>
#include <string_view>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    if (argc > 2 && std::string_view(argv[2]) == "study") {
      moelab::write_example_study(argv[1]);
      return 0;
    }
    if (argc > 2 && std::string_view(argv[2]) == "sweep") {
      moelab::write_example_sweep(argv[1]);
      return 0;
    }
    if (argc > 2 && std::string_view(argv[2]) == "hostile") {
      moelab::write_hostile_results(argv[1]);
      return 0;
    }
    const auto path = moelab::write_example_results(argv[1]);
    if (argc > 2 && std::string_view(argv[2]) == "tensorboard")
      moelab::export_tensorboard(moelab::ResultsFile(path), path.parent_path() / "tensorboard");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
