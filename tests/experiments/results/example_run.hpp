// A run with everything that can be recorded: two mixture layers of different size, two domains.
#pragma once

#include "experiments/results/run_data.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

// Layers 1 and 3 have 4 and 2 experts.
RunInfo example_info(const std::string& variant, std::uint64_t seed);
TrainRecord example_train(std::int64_t step, double loss);
EvalRecord example_eval(std::int64_t step, double loss);
RoutingRecordRow example_routing(std::int64_t step);
EvaluationStatistics example_statistics();
RoutingSamples example_samples();

// A whole run with `steps` training records and a final loss of `loss`.
RunData example_run(const std::string& variant, std::uint64_t seed, double loss, std::int64_t steps = 5);

// results.h5 of two variants x three seeds in the folder, through run.h5 files. Returns its path.
std::filesystem::path write_example_results(const std::filesystem::path& folder);

// hostile.h5: every name and text that a file can hold is markup that would run a script or fetch something.
std::filesystem::path write_hostile_results(const std::filesystem::path& folder);

// study.h5 of two dense sizes and two mixtures x five seeds, with differences and costs that are not regular.
std::filesystem::path write_example_study(const std::filesystem::path& folder);

// sweep.h5 of two variants at two points x three seeds, with labels that are wider than a figure leaves room
// for.
std::filesystem::path write_example_sweep(const std::filesystem::path& folder);

}  // namespace moelab
