#include "experiments/results/run_data.hpp"

namespace moelab {

const std::vector<std::string>& run_status_names() {
  static const std::vector<std::string> names = {"running", "done", "failed", "diverged", "interrupted"};
  return names;
}

const std::string& to_string(RunStatus status) {
  return run_status_names().at(static_cast<std::size_t>(status));
}

const std::vector<RoutingScalar>& routing_scalars() {
  static const std::vector<RoutingScalar> scalars = {
      {"router_entropy", "nat", "mean entropy of the router's probabilities", &LayerRouting::router_entropy},
      {"load_cv", "1", "standard deviation / mean of the tokens per expert", &LayerRouting::load_cv},
      {"max_violation", "1", "(max - mean) / mean of the tokens per expert", &LayerRouting::max_violation},
      {"dead_fraction", "1", "share of experts without a token", &LayerRouting::dead_fraction},
      {"load_entropy", "1", "entropy of the expert load, relative to log E", &LayerRouting::load_entropy},
      {"top1_weight", "1", "mean weight of the first choice", &LayerRouting::top1_weight},
      {"margin", "1", "mean probability of the first minus the second choice", &LayerRouting::margin},
      {"fraction_dropped", "1", "share of assignments dropped by capacity", &LayerRouting::fraction_dropped},
      {"fraction_without_expert", "1", "share of tokens that no expert sees",
       &LayerRouting::fraction_without_expert},
      {"active_compute_ratio", "1", "FFN FLOPs as routed / FFN FLOPs of all experts",
       &LayerRouting::active_compute_ratio},
  };
  return scalars;
}

}  // namespace moelab
