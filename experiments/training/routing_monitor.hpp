// From routing records to what the results file holds of them.
#pragma once

#include "core/hdf5.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/models/model.hpp"
#include "experiments/results/run_data.hpp"
#include "experiments/training/evaluator.hpp"
#include "experiments/training/routing_probes.hpp"
#include "moe/statistics.hpp"

#include <cstdint>
#include <vector>

namespace moelab {

// [mixture layer][micro-batch]
using RoutingRecords = std::vector<std::vector<moe::RoutingRecord>>;

class RoutingMonitor {
 public:
  RoutingMonitor(Model& model, const Dataset& data);

  // One row of results per mixture layer.
  std::vector<LayerRouting> layers(const RoutingRecords& records) const;
  // FLOPs of the FFNs as executed / if every expert ran on every token, over all layers of the step. 1 for a
  // dense model.
  double active_compute_ratio(const RoutingRecords& records) const;

  // Watches an evaluation at that step: keeps the choices of its first batch for the saturation, and in the
  // final evaluation counts co-activation, domains and ids.
  EvaluationObserver evaluation_observer(std::int64_t step, bool is_final);
  // The choices that were kept, for a checkpoint, and back from there.
  hdf5::Group saved() const { return probes_.saved(); }
  void restore(const hdf5::Group& group) { probes_.restore(group); }
  // After the final evaluation.
  EvaluationStatistics evaluation_statistics() const;
  // The routing of the first sequences of the final evaluation, about `num_tokens` tokens of it spread over
  // the domains.
  RoutingSamples samples(Index num_tokens) const { return probes_.samples(data_, num_tokens); }

 private:
  void observe(std::int64_t step, bool is_final, const Batch& batch, const ModelOutput& output);

  const Dataset& data_;
  std::vector<std::pair<std::int64_t, moe::FfnBlock*>> blocks_;  // model layer, mixture
  double dense_flops_per_token_ = 0;                             // of the layers without a mixture
  RoutingProbes probes_;
  bool counts_pairs_ = true;                // of experts
  bool probe_is_due_ = false;               // the next batch is the first of an evaluation
  std::vector<moe::RoutingCounts> counts_;  // of the final evaluation
};

// The mixture layers of a model, for RunInfo.
std::vector<MoeLayer> moe_layers(Model& model);

}  // namespace moelab
