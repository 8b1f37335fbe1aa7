// What an experiment is going to do, before it does it.
#pragma once

#include "experiments/config/experiment.hpp"

#include <string>

namespace moelab::cli {

// A table of the runs, one row a variant and sweep point: steps, tokens, parameters, compute, memory, and the
// time that all seeds will take on this machine, measured on a product of matrices; what the sweep points
// are; and whether the variants are comparable.
std::string plan_of(const Experiment& experiment);

// What the largest runs that may train at the same time need, about, against what the machine has left: one
// line, which says how many fit where these do not.
std::string memory_of_jobs(const Experiment& experiment, Index jobs);

// That the largest run needs more memory than the machine has, about; empty where none does.
std::string memory_warning(const Experiment& experiment);

}  // namespace moelab::cli
