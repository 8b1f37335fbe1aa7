#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json_number.hpp"
#include "experiments/results/journal.hpp"
#include "experiments/results/journal_format.hpp"

#include <exception>
#include <limits>
#include <type_traits>

#include <nlohmann/json.hpp>

namespace moelab {

namespace {

double number_at(const nlohmann::json& line, std::string_view key) {
  const auto it = line.find(key);
  return it == line.end() || it->is_null() ? kNotMeasured : it->get<double>();
}

// One entry an expert, or none.
template <class T>
std::vector<T> per_expert(const nlohmann::json& line, const MoeLayer& layer, std::string_view statistic) {
  std::vector<T> values;
  const std::string key = layer_key(layer, statistic);
  const auto it = line.find(key);
  if (it == line.end()) return values;
  require(it->size() == 0 || it->size() == static_cast<std::size_t>(layer.num_experts),
          "{} has {} entries, the layer {} experts", key, it->size(), layer.num_experts);
  for (const nlohmann::json& entry : *it) {
    if constexpr (std::is_integral_v<T>) {
      values.push_back(whole_number<T>(entry));
    } else {
      values.push_back(entry.is_null() ? static_cast<T>(kNotMeasured) : entry.get<T>());
    }
  }
  return values;
}

template <class Record, std::size_t N>
Record read_scalars(const nlohmann::json& line,
                    const std::array<std::pair<std::string_view, double Record::*>, N>& scalars) {
  Record record;
  record.step = whole_number<std::int64_t>(line.at("step"));
  record.tokens = whole_number<std::int64_t>(line.at("tokens"));
  for (const auto& [key, member] : scalars) record.*member = number_at(line, key);
  return record;
}

RoutingRecordRow read_routing(const nlohmann::json& line, const std::vector<MoeLayer>& layers) {
  RoutingRecordRow row;
  row.step = whole_number<std::int64_t>(line.at("step"));
  row.tokens = whole_number<std::int64_t>(line.at("tokens"));
  for (const MoeLayer& layer : layers) {
    LayerRouting& r = row.layers.emplace_back();
    r.expert_tokens = per_expert<std::int32_t>(line, layer, "expert_tokens");
    r.expert_dropped = per_expert<std::int32_t>(line, layer, "expert_dropped");
    r.router_probability_mean = per_expert<float>(line, layer, "router_probability_mean");
    r.expert_bias = per_expert<float>(line, layer, "expert_bias");
    for (const RoutingScalar& s : routing_scalars()) r.*s.member = number_at(line, layer_key(layer, s.name));
  }
  return row;
}

void read_line(const nlohmann::json& line, RunData& data) {
  if (line.contains("train/loss")) {
    TrainRecord record = read_scalars(line, kTrainScalars);
    for (const auto& [key, value] : line.items())
      if (std::string_view(key).starts_with(kAuxiliary))
        record.auxiliary_losses.emplace_back(key.substr(kAuxiliary.size()), number_at(line, key));
    data.train.push_back(std::move(record));
  } else if (line.contains("eval/loss")) {
    EvalRecord record = read_scalars(line, kEvalScalars);
    for (const std::string& domain : data.info.domains) {
      const std::string key = std::string(kDomain) + domain;
      if (line.contains(key)) record.loss_by_domain.push_back(number_at(line, key));
    }
    data.eval.push_back(std::move(record));
  } else {
    data.routing.push_back(read_routing(line, data.info.moe_layers));
  }
}

}  // namespace

JournalEnd read_journal_until(const std::filesystem::path& path, std::int64_t last_step, RunData& data) {
  JournalEnd end;
  const auto stop = [&](std::size_t number, const std::exception& error) {
    end.problem = fmt::format("[journal] {}:{} is not a record: {}", path.string(), number, error.what());
    return false;
  };
  end.bytes = for_lines(read_file(path), [&](std::size_t number, std::string_view text) {
    try {
      check_seal(text);
      const nlohmann::json line = nlohmann::json::parse(text);
      if (whole_number<std::int64_t>(line.at("step")) > last_step) return false;
      read_line(line, data);
      return true;
    } catch (const nlohmann::json::exception& error) {
      return stop(number, error);
    } catch (const Error& error) {
      return stop(number, error);
    }
  });
  return end;
}

void read_journal(const std::filesystem::path& path, RunData& data) {
  const JournalEnd end = read_journal_until(path, std::numeric_limits<std::int64_t>::max(), data);
  require(end.problem.empty(), "{}", end.problem);
}

}  // namespace moelab
