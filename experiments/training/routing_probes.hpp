// The routing of one batch, the same at each evaluation.
#pragma once

#include "core/hdf5.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/results/run_data.hpp"
#include "moe/ffn_block.hpp"

#include <cstdint>
#include <vector>

namespace moelab {

class RoutingProbes {
 public:
  // Of an evaluation at that step: the record of each mixture layer, and the batch. Of the one before, the
  // choices alone are kept.
  void add(std::int64_t step, std::vector<moe::RoutingRecord> layers, const Batch& batch);

  // The choices that were kept, for a checkpoint, and back from there.
  hdf5::Group saved() const;
  void restore(const hdf5::Group& group);

  // How much the choices at each step are already those of the last.
  void add_saturation(EvaluationStatistics& statistics) const;
  // The routing of the first sequences of the last batch, about `num_tokens` tokens of it spread over the
  // domains.
  RoutingSamples samples(const Dataset& data, Index num_tokens) const;

 private:
  struct Probe {
    std::int64_t step = 0;
    std::vector<moe::RoutingRecord> layers;
  };
  std::vector<Probe> probes_;
  Batch batch_;  // of the last
};

}  // namespace moelab
