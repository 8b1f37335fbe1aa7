// run.json: who a run is, written before it starts, so that its folder explains itself and can be recovered.
#pragma once

#include "experiments/results/run_data.hpp"

#include <filesystem>

namespace moelab {

void write_run_info(const std::filesystem::path& path, const RunInfo& info);
// Error naming the file and what is missing in it.
RunInfo read_run_info(const std::filesystem::path& path);

}  // namespace moelab
