// What stands against an upcycling, and how the experts of each layer come from a dense FFN.
#pragma once

#include "core/checkpoint.hpp"
#include "experiments/models/upcycle.hpp"

#include <string>
#include <vector>

namespace moelab {

// How the experts of a layer come from the dense FFN.
struct UpcyclingPlan {
  Index num_experts = 0;
  Index shards = 1;       // G
  double factor = 1;      // on what comes out of an expert: G / scale
  bool preserves = true;  // the function of the dense FFN, at the start
};

// As upcycle_problems(). `plans` gets one a layer; those of layers that stay dense have no experts.
std::vector<std::string> plan_upcycling(const ModelConfig& config, const CheckpointReader& checkpoint,
                                        std::vector<UpcyclingPlan>& plans);

}  // namespace moelab
