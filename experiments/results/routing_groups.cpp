#include "core/error.hpp"
#include "experiments/results/group_parts.hpp"
#include "experiments/results/run_group.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace moelab {

namespace {

std::size_t largest_expert_count(const RunInfo& info) {
  std::int64_t largest = 0;
  for (const MoeLayer& l : info.moe_layers) largest = std::max(largest, l.num_experts);
  return static_cast<std::size_t>(largest);
}

// Layers may have different numbers of experts: their arrays are filled up with `missing`.
bool is_ragged(const RunInfo& info) {
  return std::ranges::any_of(
      info.moe_layers, [&](const MoeLayer& l) { return l.num_experts != info.moe_layers[0].num_experts; });
}

void layer_scale(hdf5::Group& g, const RunInfo& info) {
  g.series("layer", "layer", column(info.moe_layers, &MoeLayer::layer),
           {"1", "index of the layer in the model"});
}

}  // namespace

void add_routing(hdf5::Group& run, const RunData& data) {
  const RunInfo& info = data.info;
  const std::vector<RoutingRecordRow>& rows = data.routing;
  const std::size_t layers = info.moe_layers.size();
  if (rows.empty() || layers == 0) return;
  const std::size_t experts = largest_expert_count(info);
  hdf5::Group& g = run.group("routing");
  default_plot(g, "load_cv", "step");
  step_and_tokens(g, rows);
  layer_scale(g, info);
  g.series("num_experts", "layer", column(info.moe_layers, &MoeLayer::num_experts),
           {"1", "experts of the layer"});
  g.series("top_k", "layer", column(info.moe_layers, &MoeLayer::top_k), {"1", "experts of a token"});

  const auto per_expert = [&]<class T>(const char* name, std::vector<T> LayerRouting::*member, T missing,
                                       T absent, bool wanted, hdf5::Meaning meaning) {
    if (!wanted) return;
    std::vector<T> values(rows.size() * layers * experts, missing);
    for (std::size_t s = 0; s < rows.size(); ++s) {
      for (std::size_t l = 0; l < layers; ++l) {
        const std::vector<T>& from = rows[s].layers[l].*member;
        T* to = &values[(s * layers + l) * experts];
        if (from.empty()) {
          std::fill_n(to, info.moe_layers[l].num_experts, absent);
        } else {
          require(from.size() == static_cast<std::size_t>(info.moe_layers[l].num_experts),
                  "[results] {} of layer {} has {} entries instead of {}", name, info.moe_layers[l].layer,
                  from.size(), info.moe_layers[l].num_experts);
          std::ranges::copy(from, to);
        }
      }
    }
    g.array(name, {"step", "layer", "expert"}, {rows.size(), layers, experts}, std::move(values),
            std::move(meaning));
    if constexpr (std::is_integral_v<T>)
      if (is_ragged(info)) g.datasets.back().fill = missing;
  };
  const auto measured = [&](std::vector<float> LayerRouting::*member) {
    return std::ranges::any_of(rows, [&](const RoutingRecordRow& row) {
      return std::ranges::any_of(row.layers, [&](const LayerRouting& l) { return !(l.*member).empty(); });
    });
  };
  const auto nan = static_cast<float>(kNotMeasured);
  per_expert("expert_tokens", &LayerRouting::expert_tokens, -1, -1, true,
             {"token", "tokens that chose the expert"});
  per_expert("expert_dropped", &LayerRouting::expert_dropped, -1, 0, true,
             {"token", "tokens dropped by capacity"});
  per_expert("router_probability_mean", &LayerRouting::router_probability_mean, nan, nan,
             measured(&LayerRouting::router_probability_mean), {"1", "mean router probability"});
  per_expert("expert_bias", &LayerRouting::expert_bias, nan, nan, measured(&LayerRouting::expert_bias),
             {"1", "balancing bias of the expert"});
  for (const RoutingScalar& s : routing_scalars()) {
    std::vector<double> values;
    values.reserve(rows.size() * layers);
    for (const RoutingRecordRow& row : rows)
      for (const LayerRouting& l : row.layers) values.push_back(l.*s.member);
    g.array(s.name, {"step", "layer"}, {rows.size(), layers}, std::move(values), {s.units, s.long_name});
  }
}

void add_statistics(hdf5::Group& run, const RunData& data) {
  const EvaluationStatistics& stats = data.statistics;
  const RunInfo& info = data.info;
  const std::size_t layers = info.moe_layers.size();
  const std::size_t experts = largest_expert_count(info);
  const bool any = !stats.coactivation.empty() || !stats.expert_tokens_by_domain.empty() ||
                   !stats.vocabulary_specialisation.empty() || !stats.information_token.empty() ||
                   !stats.information_domain.empty() || !stats.saturation.empty();
  if (!any || layers == 0) return;
  hdf5::Group& g = run.group("routing_eval");
  layer_scale(g, info);
  // Rows of `width` entries per expert, of layers that may have fewer experts (and, if square, shorter rows).
  const auto per_expert = [&](const char* name, const std::vector<std::vector<std::int64_t>>& from,
                              std::string last, std::size_t width, bool square, hdf5::Meaning meaning) {
    if (from.empty()) return;
    std::vector<std::int64_t> values(layers * experts * width, -1);
    for (std::size_t l = 0; l < layers; ++l) {
      const auto rows = static_cast<std::size_t>(info.moe_layers[l].num_experts);
      const std::size_t columns = square ? rows : width;
      require(from[l].size() == rows * columns, "[results] {} of layer {} has {} entries instead of {}", name,
              info.moe_layers[l].layer, from[l].size(), rows * columns);
      for (std::size_t e = 0; e < rows; ++e)
        std::copy_n(&from[l][e * columns], columns, &values[(l * experts + e) * width]);
    }
    g.array(name, {"layer", "expert", std::move(last)}, {layers, experts, width}, std::move(values),
            std::move(meaning));
    if (is_ragged(info)) g.datasets.back().fill = -1;
  };
  per_expert("coactivation", stats.coactivation, "expert_b", experts, true,
             {"token", "tokens that chose both experts; on the diagonal: that chose the expert"});
  if (!stats.expert_tokens_by_domain.empty()) {
    require(!info.domains.empty(), "[results] tokens by domain are given, but no domains");
    g.series("domain", "domain", info.domains, {"", "domain of the data"});
    per_expert("expert_tokens_by_domain", stats.expert_tokens_by_domain, "domain", info.domains.size(), false,
               {"token", "tokens of the domain that chose the expert"});
  }
  const auto per_layer = [&](const char* name, const std::vector<double>& values, hdf5::Meaning meaning) {
    if (!values.empty()) g.series(name, "layer", values, std::move(meaning));
  };
  per_layer("vocabulary_specialisation", stats.vocabulary_specialisation,
            {"1", "share of the most frequent expert of a token id, mean over ids"});
  per_layer("information_token", stats.information_token,
            {"nat", "mutual information of expert and token id"});
  per_layer("information_domain", stats.information_domain,
            {"nat", "mutual information of expert and domain"});
  if (stats.saturation.empty()) return;
  g.series("probe_step", "probe_step", stats.saturation_steps, {"1", "optimizer steps done at the probe"});
  std::vector<double> values;
  for (const std::vector<double>& row : stats.saturation) values.insert(values.end(), row.begin(), row.end());
  g.array("router_saturation", {"probe_step", "layer"}, {stats.saturation_steps.size(), layers},
          std::move(values), {"1", "share of the final choice of experts that was already made"});
}

void add_samples(hdf5::Group& run, const RunData& data) {
  const RoutingSamples& s = data.samples;
  if (s.num_samples == 0) return;
  const auto samples = static_cast<std::size_t>(s.num_samples),
             positions = static_cast<std::size_t>(s.num_positions);
  const auto slots = static_cast<std::size_t>(s.num_slots);
  const std::size_t layers = data.info.moe_layers.size();
  hdf5::Group& g = run.group("routing_samples");
  layer_scale(g, data.info);
  g.series("domain", "sample", s.domain, {"1", "index of the domain, -1: none"});
  g.array("token_id", {"sample", "position"}, {samples, positions}, s.token_id,
          {"1", "token id, -1: padding"});
  if (!s.token_text.empty())
    g.array("token_text", {"sample", "position"}, {samples, positions}, s.token_text, {"", "token as text"});
  const std::vector<std::string> dimensions = {"sample", "position", "layer", "slot"};
  g.array("expert_id", dimensions, {samples, positions, layers, slots}, s.expert_id,
          {"1", "chosen expert, in order of falling weight; -1: dropped or none"});
  g.array("weight", dimensions, {samples, positions, layers, slots}, s.weight, {"1", "combine weight"});
}

EvaluationStatistics read_statistics(const hdf5::Reader& reader, const std::string& run_group,
                                     const RunInfo& info) {
  EvaluationStatistics stats;
  const std::string g = run_group + "/routing_eval/";
  const auto per_expert = [&](const char* name, bool square) {
    std::vector<std::vector<std::int64_t>> result;
    if (!reader.has(g + name)) return result;
    const std::size_t width = square ? largest_expert_count(info) : info.domains.size();
    const auto [shape, values] = reader.read_array<std::int64_t>(
        g + name, {info.moe_layers.size(), largest_expert_count(info), width});
    for (std::size_t l = 0; l < shape[0]; ++l) {
      const auto rows = static_cast<std::size_t>(info.moe_layers[l].num_experts);
      const std::size_t columns = square ? rows : width;
      std::vector<std::int64_t>& to = result.emplace_back();
      for (std::size_t e = 0; e < rows; ++e) {
        const auto row = values.begin() + static_cast<std::ptrdiff_t>((l * shape[1] + e) * shape[2]);
        to.insert(to.end(), row, row + static_cast<std::ptrdiff_t>(columns));
      }
    }
    return result;
  };
  const auto per_layer = [&](const char* name) {
    if (!reader.has(g + name)) return std::vector<double>();
    return reader.read_array<double>(g + name, {info.moe_layers.size()}).values;
  };
  stats.coactivation = per_expert("coactivation", true);
  stats.expert_tokens_by_domain = per_expert("expert_tokens_by_domain", false);
  stats.vocabulary_specialisation = per_layer("vocabulary_specialisation");
  stats.information_token = per_layer("information_token");
  stats.information_domain = per_layer("information_domain");
  if (reader.has(g + "router_saturation")) {
    stats.saturation_steps = reader.read_array<std::int64_t>(g + "probe_step", {hdf5::kAnyLength}).values;
    const std::size_t layers = info.moe_layers.size();
    const auto values =
        reader.read_array<double>(g + "router_saturation", {stats.saturation_steps.size(), layers}).values;
    for (std::size_t s = 0; s < stats.saturation_steps.size(); ++s) {
      const auto row = values.begin() + static_cast<std::ptrdiff_t>(s * layers);
      stats.saturation.emplace_back(row, row + static_cast<std::ptrdiff_t>(layers));
    }
  }
  return stats;
}

RoutingSamples read_routing_samples(const hdf5::Reader& reader, const std::string& run_group,
                                    const RunInfo& info) {
  RoutingSamples s;
  const std::string g = run_group + "/routing_samples/";
  if (!reader.has(g + "expert_id")) return s;
  const std::size_t layers = info.moe_layers.size();
  auto [shape, expert_id] = reader.read_array<std::int32_t>(
      g + "expert_id", {hdf5::kAnyLength, hdf5::kAnyLength, layers, hdf5::kAnyLength});
  s.expert_id = std::move(expert_id);
  s.num_samples = static_cast<std::int64_t>(shape[0]);
  s.num_positions = static_cast<std::int64_t>(shape[1]);
  s.num_slots = static_cast<std::int64_t>(shape[3]);
  s.domain = reader.read_array<std::int32_t>(g + "domain", {shape[0]}).values;
  s.token_id = reader.read_array<std::int32_t>(g + "token_id", {shape[0], shape[1]}).values;
  if (reader.has(g + "token_text"))
    s.token_text = reader.read_array<std::string>(g + "token_text", {shape[0], shape[1]}).values;
  s.weight = reader.read_array<float>(g + "weight", {shape[0], shape[1], layers, shape[3]}).values;
  return s;
}

}  // namespace moelab
