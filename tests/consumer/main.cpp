#include "experiments/cli/program.hpp"

#include "kinds.hpp"

int main(int argc, char** argv) {
  add_nearest_router();
  add_scaling_expert();
  return moelab::cli::run_program(argc, argv);
}
