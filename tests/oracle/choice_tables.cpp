#include "tests/oracle/choice_tables.hpp"

namespace moelab::oracle {

ChoiceTables choice_tables(const moe::RoutingRecord& record, std::span<const std::uint8_t> is_real,
                           Index places) {
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  const Index n = static_cast<Index>(record.choice_offsets.size()) - 1;
  ChoiceTables tables;
  tables.ids = Matrix::Constant(n, places, -1);
  tables.weights = Matrix::Zero(n, places);
  tables.kept = Matrix::Zero(n, places);
  tables.combine = Matrix::Zero(n, record.num_experts);
  for (Index t = 0; t < n; ++t) {
    const Index first = record.choice_offsets[at(t)];
    const Index count = record.choice_offsets[at(t + 1)] - first;
    Index left = 0;
    for (Index j = 0; j < count; ++j) {
      const std::size_t a = at(first + j);
      left += record.kept[a];
      tables.combine(t, record.expert_of[a]) = record.combine_of[a];
      if (j >= places) continue;
      tables.ids(t, j) = record.expert_of[a];
      tables.weights(t, j) = record.weight_of[a];
      tables.kept(t, j) = record.kept[a];
    }
    const bool real = is_real.empty() || is_real[at(t)] != 0;
    tables.assignments += count;
    tables.dropped += count - left;
    tables.tokens += real ? 1 : 0;
    tables.tokens_without_expert += real && left == 0 ? 1 : 0;
  }
  return tables;
}

}  // namespace moelab::oracle
