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

// Of a probe that is not the last, saturation needs the choices alone. Scores are E numbers a token, of every
// evaluation.
void keep_choices(std::vector<moe::RoutingRecord>& layers) {
  for (moe::RoutingRecord& record : layers) {
    record.scores = Matrix();
    record.weight_of = {};
    record.kept = {};
    record.combine_of = {};
  }
}

template <class T>
const std::vector<T>& values_of(const hdf5::Dataset& dataset) {
  const auto* values = std::get_if<std::vector<T>>(&dataset.values);
  require(values != nullptr, "[routing] {} of the checkpoint holds values of another type", dataset.name);
  return *values;
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
    // A checkpoint of this step has brought a probe of it that lacks what samples need.
    if (!probes_.empty() && probes_.back().step == step) probes_.pop_back();
    if (!probes_.empty()) keep_choices(probes_.back().layers);
    probes_.push_back({step, records_of(output)});
    probe_batch_ = batch;
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

hdf5::Group RoutingMonitor::saved() const {
  hdf5::Group group;
  for (const Probe& probe : probes_) {
    hdf5::Group& of_probe = group.group(fmt::format("probe_{}", probe.step));
    for (std::size_t l = 0; l < probe.layers.size(); ++l) {
      const moe::RoutingRecord& record = probe.layers[l];
      hdf5::Group& layer = of_probe.group(fmt::format("layer_{}", l));
      // Routers that mix tokens choose nothing.
      if (!record.choice_offsets.empty()) {
        layer.series("choice_offsets", "token",
                     std::vector<std::int64_t>(record.choice_offsets.begin(), record.choice_offsets.end()),
                     {"1", "first choice of each token"});
      }
      if (!record.expert_of.empty()) {
        layer.series("expert_of", "choice", record.expert_of, {"1", "chosen expert"});
      }
    }
  }
  return group;
}

void RoutingMonitor::restore(const hdf5::Group& group) {
  probes_.clear();
  for (const hdf5::Group& of_probe : group.groups) {
    Probe probe;
    probe.step = std::stoll(of_probe.name.substr(std::string("probe_").size()));
    for (const hdf5::Group& layer : of_probe.groups) {
      const hdf5::Dataset* offsets = layer.find("choice_offsets");
      const hdf5::Dataset* experts = layer.find("expert_of");
      moe::RoutingRecord record;
      if (offsets != nullptr) {
        const auto& values = values_of<std::int64_t>(*offsets);
        record.choice_offsets.assign(values.begin(), values.end());
      }
      if (experts != nullptr) record.expert_of = values_of<std::int32_t>(*experts);
      probe.layers.push_back(std::move(record));
    }
    probes_.push_back(std::move(probe));
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
  for (const Probe& probe : probes_) {
    statistics.saturation_steps.push_back(probe.step);
    std::vector<double> overlap;
    for (std::size_t l = 0; l < probe.layers.size(); ++l) {
      overlap.push_back(moe::routing_overlap(probe.layers[l], probes_.back().layers[l]));
    }
    statistics.saturation.push_back(std::move(overlap));
  }
  return statistics;
}

RoutingSamples RoutingMonitor::samples(Index num_tokens) const {
  RoutingSamples samples;
  if (probes_.empty() || num_tokens == 0) return samples;
  const std::vector<moe::RoutingRecord>& layers = probes_.back().layers;
  const Batch& batch = probe_batch_;
  const auto num_domains = static_cast<Index>(data_.domains().size());
  const Index num_samples = std::min({batch.num_sequences, num_domains, num_tokens});
  const Index num_positions = std::min(batch.seq_len, std::max<Index>(1, num_tokens / num_samples));
  Index num_slots = 0;
  for (const moe::RoutingRecord& record : layers) {
    for (std::size_t t = 0; t + 1 < record.choice_offsets.size(); ++t) {
      num_slots = std::max(num_slots, record.choice_offsets[t + 1] - record.choice_offsets[t]);
    }
  }
  if (num_slots == 0) return samples;  // routers that mix tokens choose nothing
  samples.num_samples = num_samples;
  samples.num_positions = num_positions;
  samples.num_slots = num_slots;
  for (Index b = 0; b < num_samples; ++b) {
    samples.domain.push_back(batch.domain[static_cast<std::size_t>(b)]);
    for (Index t = 0; t < num_positions; ++t) {
      const auto row = static_cast<std::size_t>(b * batch.seq_len + t);
      const bool is_real = batch.is_real.empty() || batch.is_real[row] != 0;
      const std::int32_t id = batch.inputs.empty() || !is_real ? -1 : batch.inputs[row];
      samples.token_id.push_back(id);
      if (data_.vocab_size() > 0) samples.token_text.push_back(id < 0 ? "" : data_.token_text(id));
      for (const moe::RoutingRecord& record : layers) {
        const bool has_choices = !record.choice_offsets.empty();
        const Index begin = has_choices ? record.choice_offsets[row] : 0;
        const Index end = has_choices ? record.choice_offsets[row + 1] : 0;
        for (Index s = 0; s < num_slots; ++s) {
          const auto a = static_cast<std::size_t>(begin + s);
          const bool is_kept = begin + s < end && record.kept[a] != 0;
          samples.expert_id.push_back(is_kept ? record.expert_of[a] : -1);
          samples.weight.push_back(is_kept ? static_cast<float>(record.weight_of[a]) : 0.0F);
        }
      }
    }
  }
  return samples;
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
