// From the choices of a step to the row that is recorded of it.
#include "experiments/training/routing_monitor.hpp"

#include "experiments/models/make_model.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"

#include <cmath>

using namespace moelab;

namespace {

// One choice a token.
moe::RoutingRecord record_of(const std::vector<std::int32_t>& experts) {
  moe::RoutingRecord record;
  record.num_tokens = static_cast<Index>(experts.size());
  record.num_experts = 4;
  record.expert_of = experts;
  record.weight_of.assign(experts.size(), Scalar(1));
  record.combine_of = record.weight_of;
  record.kept.assign(experts.size(), 1);
  for (std::size_t i = 0; i <= experts.size(); ++i) record.choice_offsets.push_back(static_cast<Index>(i));
  return record;
}

}  // namespace

// Counts (8, 0, 0, 0): mean 2, standard deviation sqrt((36 + 3 * 4) / 4) = 2 sqrt(3).
TEST_CASE("a layer that sends all tokens to one expert is recorded as collapsed", "[routing_monitor]") {
  const SmallExperiment fixture;
  const auto model = make_model(fixture.run("moe").config.model, shape_of(*fixture.data));
  const RoutingMonitor monitor(*model, *fixture.data);
  // Layer 0 in two micro-batches; layer 1 balanced.
  const std::vector<LayerRouting> rows = monitor.layers({{record_of({0, 0, 0, 0}), record_of({0, 0, 0, 0})},
                                                         {record_of({0, 1, 2, 3}), record_of({3, 2, 1, 0})}});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].expert_tokens == std::vector<std::int32_t>{8, 0, 0, 0});
  CHECK_THAT(rows[0].load_cv, WithinAbs(std::sqrt(3.0), 1e-12));
  CHECK_THAT(rows[0].dead_fraction, WithinAbs(0.75, 1e-12));
  CHECK_THAT(rows[0].max_violation, WithinAbs(3, 1e-12));  // 8 / 2 - 1
  CHECK_THAT(rows[0].load_entropy, WithinAbs(0, 1e-12));
  CHECK(rows[1].expert_tokens == std::vector<std::int32_t>{2, 2, 2, 2});
  CHECK_THAT(rows[1].load_cv, WithinAbs(0, 1e-12));
  CHECK(rows[1].dead_fraction == 0);
}
