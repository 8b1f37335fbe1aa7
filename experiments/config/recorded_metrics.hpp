// What a run will record, known before it is trained.
#pragma once

#include "experiments/config/experiment.hpp"

#include <string>
#include <vector>

namespace moelab {

// Names as in results files: eval/loss, eval/loss/DOMAIN, train/grad_norm, train/aux_LOSS, ...
std::vector<std::string> recorded_metrics(const RunConfig& config);

struct MixtureSizes {
  Index num_layers = 0;   // with a mixture
  Index num_experts = 0;  // of the largest
};
MixtureSizes mixture_sizes(const ModelConfig& model);

// Memory that the records of the routing take by the end of the run, each held more than once while it is
// written. Of every expert at every record; of pairs of experts, where they are counted, and of experts by
// domain.
double routing_record_bytes(const RunConfig& config);

}  // namespace moelab
