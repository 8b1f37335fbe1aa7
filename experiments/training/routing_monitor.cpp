#include "experiments/training/routing_monitor.hpp"

#include "core/error.hpp"
#include "moe/cost.hpp"

#include <algorithm>

namespace moelab {

namespace {

template <class To, class From>
std::vector<To> converted(const std::vector<From>& from) {
  std::vector<To> to;
  to.reserve(from.size());
  for (const From value : from) to.push_back(static_cast<To>(value));
  return to;
}

LayerRouting to_results(const moe::LayerStatistics& s) {
  LayerRouting r;
  r.expert_tokens = converted<std::int32_t>(s.expert_tokens);
  r.expert_dropped = converted<std::int32_t>(s.expert_dropped);
  r.router_probability_mean = converted<float>(s.probability_mean);
  r.router_entropy = s.router_entropy;
  r.load_cv = s.load_cv;
  r.max_violation = s.max_violation;
  r.dead_fraction = s.dead_fraction;
  r.load_entropy = s.load_entropy;
  r.top1_weight = s.top1_weight;
  r.margin = s.margin;
  r.fraction_dropped = s.fraction_dropped;
  r.fraction_without_expert = s.fraction_without_expert;
  r.active_compute_ratio = s.active_compute_ratio;
  return r;
}

// The expert bias of a mixture, if it has one: its state of that name.
std::vector<float> expert_bias_of(moe::FfnBlock& block) {
  for (const NamedState& state : states(block)) {
    if (!state.path.ends_with("expert_bias")) continue;
    const Matrix& bias = *state.state;
    return converted<float>(std::vector<Scalar>(bias.data(), bias.data() + bias.size()));
  }
  return {};
}

std::vector<moe::RoutingRecord> records_of(const ModelOutput& output) {
  std::vector<moe::RoutingRecord> records;
  for (const moe::FfnOutput& ffn : output.ffn) {
    if (ffn.routing) records.push_back(*ffn.routing);
  }
  return records;
}

}  // namespace

RoutingMonitor::RoutingMonitor(Model& model, const Dataset& data) : data_(data) {
  const auto blocks = model.ffn_blocks();
  for (std::size_t l = 0; l < blocks.size(); ++l) {
    if (blocks[l]->num_experts() > 0) {
      blocks_.emplace_back(static_cast<std::int64_t>(l), blocks[l]);
    } else {
      dense_flops_per_token_ += moe::planned_compute(*blocks[l]).full_flops;
    }
  }
  Index most_experts = 0;
  for (const auto& [layer, block] : blocks_) most_experts = std::max(most_experts, block->num_experts());
  counts_pairs_ = moe::counts_pairs(static_cast<Index>(blocks_.size()), most_experts);
}

std::vector<LayerRouting> RoutingMonitor::layers(const RoutingRecords& records) const {
  require(records.size() == blocks_.size(), "[routing] records of {} layers, {} mixtures", records.size(),
          blocks_.size());
  std::vector<LayerRouting> rows;
  for (std::size_t l = 0; l < records.size(); ++l) {
    rows.push_back(to_results(moe::layer_statistics(records[l])));
    rows.back().expert_bias = expert_bias_of(*blocks_[l].second);
  }
  return rows;
}

double RoutingMonitor::active_compute_ratio(const RoutingRecords& records) const {
  if (records.empty()) return 1;
  double active = 0;
  double full = 0;
  for (const moe::RoutingRecord& record : records.front()) {
    active += dense_flops_per_token_ * static_cast<double>(record.num_tokens);
    full += dense_flops_per_token_ * static_cast<double>(record.num_tokens);
  }
  for (const auto& layer : records) {
    for (const moe::RoutingRecord& record : layer) {
      active += record.active_flops;
      full += record.full_flops;
    }
  }
  return full > 0 ? active / full : 1;
}

EvaluationObserver RoutingMonitor::evaluation_observer(std::int64_t step, bool is_final) {
  if (blocks_.empty()) return {};
  counts_.clear();
  probe_is_due_ = true;
  return [this, step, is_final](const Batch& batch, const ModelOutput& output) {
    observe(step, is_final, batch, output);
  };
}

void RoutingMonitor::observe(std::int64_t step, bool is_final, const Batch& batch,
                             const ModelOutput& output) {
  if (probe_is_due_) {
    probe_is_due_ = false;
    probes_.add(step, records_of(output), batch);
  }
  if (!is_final) return;
  const auto num_domains = static_cast<Index>(data_.domains().size());
  std::vector<std::int32_t> domain_of_token;
  for (Index t = 0; t < batch.size(); ++t) {
    domain_of_token.push_back(batch.domain[static_cast<std::size_t>(t / batch.seq_len)]);
  }
  std::size_t layer = 0;
  for (const moe::FfnOutput& ffn : output.ffn) {
    if (!ffn.routing) continue;
    if (counts_.size() == layer) {
      counts_.emplace_back(ffn.routing->num_experts, num_domains, data_.vocab_size(), counts_pairs_);
    }
    moe::RoutingCounts& counts = counts_[layer++];
    if (!ffn.routing->choice_offsets.empty()) counts.add(*ffn.routing, batch.inputs, domain_of_token);
  }
}

EvaluationStatistics RoutingMonitor::evaluation_statistics() const {
  EvaluationStatistics statistics;
  for (const moe::RoutingCounts& counts : counts_) {
    if (counts_pairs_) statistics.coactivation.push_back(counts.coactivation());
    statistics.expert_tokens_by_domain.push_back(counts.tokens_by_domain());
    statistics.vocabulary_specialisation.push_back(counts.vocabulary_specialisation());
    statistics.information_token.push_back(counts.information_token());
    statistics.information_domain.push_back(counts.information_domain());
  }
  probes_.add_saturation(statistics);
  return statistics;
}

std::vector<MoeLayer> moe_layers(Model& model) {
  std::vector<MoeLayer> layers;
  const auto blocks = model.ffn_blocks();
  for (std::size_t l = 0; l < blocks.size(); ++l) {
    if (blocks[l]->num_experts() == 0) continue;
    layers.push_back(
        {static_cast<std::int64_t>(l), blocks[l]->num_experts(), static_cast<double>(blocks[l]->top_k())});
  }
  return layers;
}

}  // namespace moelab
