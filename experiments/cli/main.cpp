#include "experiments/cli/program.hpp"

int main(int argc, char** argv) { return moelab::cli::run_program(argc, argv); }
