// A decoder as it is measured: with its batch, parameters and optimizer.
#pragma once

#include "core/context.hpp"
#include "core/module.hpp"
#include "core/optim.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/models/model.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace moelab::bench {

enum class Phase { forward, backward, update };

class TrainCase {
 public:
  TrainCase(const DecoderShape& shape, gemm::Precision precision, bool is_moe);

  // One training step.
  void step();
  // Seconds of a phase, of the last `count` steps: those before them warmed up.
  double median(Phase phase, std::size_t count) const;
  // Of all products that the last step has executed.
  double flops() const { return 2 * static_cast<double>(multiply_adds_); }

 private:
  Batch batch_;
  std::unique_ptr<Model> model_;
  ParameterStore store_;
  std::unique_ptr<Optimizer> optimizer_;
  ForwardContext context_;
  std::array<std::vector<double>, 3> phases_;
  std::uint64_t multiply_adds_ = 0;
};

}  // namespace moelab::bench
