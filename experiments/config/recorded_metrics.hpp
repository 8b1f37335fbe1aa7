// The metrics that a run will record, known before it is trained.
#pragma once

#include "experiments/config/experiment.hpp"

#include <string>
#include <vector>

namespace moelab {

// Names as in results files: eval/loss, eval/loss/DOMAIN, train/grad_norm, train/aux_LOSS, ...
std::vector<std::string> recorded_metrics(const RunConfig& config);

}  // namespace moelab
