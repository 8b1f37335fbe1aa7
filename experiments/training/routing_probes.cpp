#include "experiments/training/routing_probes.hpp"

#include "core/error.hpp"
#include "moe/statistics.hpp"

#include <algorithm>

namespace moelab {

namespace {

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

void RoutingProbes::add(std::int64_t step, std::vector<moe::RoutingRecord> layers, const Batch& batch) {
  // A checkpoint of this step has brought a probe of it that lacks what samples need.
  if (!probes_.empty() && probes_.back().step == step) probes_.pop_back();
  if (!probes_.empty()) keep_choices(probes_.back().layers);
  probes_.push_back({step, std::move(layers)});
  batch_ = batch;
}

hdf5::Group RoutingProbes::saved() const {
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

void RoutingProbes::restore(const hdf5::Group& group) {
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

void RoutingProbes::add_saturation(EvaluationStatistics& statistics) const {
  for (const Probe& probe : probes_) {
    statistics.saturation_steps.push_back(probe.step);
    std::vector<double> overlap;
    for (std::size_t l = 0; l < probe.layers.size(); ++l) {
      overlap.push_back(moe::routing_overlap(probe.layers[l], probes_.back().layers[l]));
    }
    statistics.saturation.push_back(std::move(overlap));
  }
}

RoutingSamples RoutingProbes::samples(const Dataset& data, Index num_tokens) const {
  RoutingSamples samples;
  if (probes_.empty() || num_tokens == 0) return samples;
  const std::vector<moe::RoutingRecord>& layers = probes_.back().layers;
  const Batch& batch = batch_;
  const auto num_domains = static_cast<Index>(data.domains().size());
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
      if (data.vocab_size() > 0) samples.token_text.push_back(id < 0 ? "" : data.token_text(id));
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

}  // namespace moelab
