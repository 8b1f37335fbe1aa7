#include "tests/experiments/training/outcome.hpp"

#include "core/checkpoint.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "tests/support/catch.hpp"

namespace moelab {

Outcome outcome_of(const std::filesystem::path& folder) {
  Outcome outcome;
  const CheckpointFolder checkpoints(folder / "checkpoints");
  const CheckpointReader reader(checkpoints.path_of(checkpoints.steps().front()));
  for (const std::string& name : reader.parameter_names())
    outcome.parameters.push_back(reader.parameter(name));
  outcome.results = recover_run(folder);
  return outcome;
}

void check_same(const Outcome& a, const Outcome& b) {
  CHECK(a.parameters == b.parameters);
  REQUIRE(a.results.train.size() == b.results.train.size());
  for (std::size_t i = 0; i < a.results.train.size(); ++i) {
    CHECK(a.results.train[i].step == b.results.train[i].step);
    CHECK(a.results.train[i].loss == b.results.train[i].loss);
    CHECK(a.results.train[i].grad_norm == b.results.train[i].grad_norm);
    CHECK(a.results.train[i].auxiliary_losses == b.results.train[i].auxiliary_losses);
  }
  REQUIRE(a.results.eval.size() == b.results.eval.size());
  for (std::size_t i = 0; i < a.results.eval.size(); ++i)
    CHECK(a.results.eval[i].loss == b.results.eval[i].loss);
  REQUIRE(a.results.routing.size() == b.results.routing.size());
  for (std::size_t i = 0; i < a.results.routing.size(); ++i) {
    for (std::size_t l = 0; l < a.results.routing[i].layers.size(); ++l) {
      CHECK(a.results.routing[i].layers[l].expert_tokens == b.results.routing[i].layers[l].expert_tokens);
    }
  }
  CHECK(a.results.statistics.coactivation == b.results.statistics.coactivation);
  CHECK(a.results.statistics.saturation_steps == b.results.statistics.saturation_steps);
  CHECK(a.results.statistics.saturation == b.results.statistics.saturation);
  CHECK(a.results.samples.expert_id == b.results.samples.expert_id);
}

}  // namespace moelab
