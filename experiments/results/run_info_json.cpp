#include "experiments/results/run_info_json.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json_number.hpp"
#include "core/json_text.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

namespace moelab {

namespace {

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }
double number(const json& value) { return value.is_null() ? kNotMeasured : value.get<double>(); }

json to_json(const AccountingTable& a) {
  json rows = json::array();
  for (const AccountingRow& r : a.rows)
    rows.push_back({{"module", r.module},
                    {"kind", r.kind},
                    {"params_total", r.params_total},
                    {"params_active", number(r.params_active)},
                    {"flops_forward_per_token", number(r.flops_forward_per_token)}});
  return {{"rows", rows},
          {"params_total", a.params_total},
          {"params_active", number(a.params_active)},
          {"params_active_without_input_embedding", number(a.params_active_without_input_embedding)},
          {"params_active_without_embeddings", number(a.params_active_without_embeddings)},
          {"flops_forward_per_token", number(a.flops_forward_per_token)},
          {"flops_forward_per_token_causal", number(a.flops_forward_per_token_causal)},
          {"active_compute_ratio", number(a.active_compute_ratio)},
          {"conventions", a.conventions}};
}

[[noreturn]] void no_run(const std::filesystem::path& path, const std::exception& error) {
  fail("[run] {} does not describe a run: {}", path.string(), error.what());
}

AccountingTable accounting_from(const json& j) {
  AccountingTable a;
  for (const json& r : j.at("rows"))
    a.rows.push_back({r.at("module").get<std::string>(), r.at("kind").get<std::string>(),
                      whole_number<std::int64_t>(r.at("params_total")), number(r.at("params_active")),
                      number(r.at("flops_forward_per_token"))});
  a.params_total = whole_number<std::int64_t>(j.at("params_total"));
  a.params_active = number(j.at("params_active"));
  a.params_active_without_input_embedding = number(j.at("params_active_without_input_embedding"));
  a.params_active_without_embeddings = number(j.at("params_active_without_embeddings"));
  a.flops_forward_per_token = number(j.at("flops_forward_per_token"));
  a.flops_forward_per_token_causal = number(j.at("flops_forward_per_token_causal"));
  a.active_compute_ratio = number(j.at("active_compute_ratio"));
  a.conventions = j.at("conventions").get<std::string>();
  return a;
}

}  // namespace

void write_run_info(const std::filesystem::path& path, const RunInfo& info) {
  json layers = json::array();
  for (const MoeLayer& l : info.moe_layers)
    layers.push_back({{"layer", l.layer}, {"num_experts", l.num_experts}, {"top_k", number(l.top_k)}});
  json provenance = json::array();
  for (const auto& [key, value] : info.provenance) provenance.push_back({key, value});
  const json j = {{"name", info.name},        {"variant", info.variant},
                  {"seed", info.seed},        {"sweep_point", info.sweep_point},
                  {"dataset", info.dataset},  {"domains", info.domains},
                  {"moe_layers", layers},     {"accounting", to_json(info.accounting)},
                  {"provenance", provenance}, {"config_resolved", info.config_resolved}};
  // Text that is not UTF-8 (a path, say) is written with replacement characters rather than refused.
  replace_file(path, json_text(j, 2) + "\n");
}

RunInfo read_run_info(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  try {
    const json j = json::parse(text);
    RunInfo info;
    info.name = j.at("name").get<std::string>();
    info.variant = j.at("variant").get<std::string>();
    info.seed = whole_number<std::uint64_t>(j.at("seed"));
    info.sweep_point = j.at("sweep_point").get<std::string>();
    info.dataset = j.at("dataset").get<std::string>();
    info.domains = j.at("domains").get<std::vector<std::string>>();
    for (const json& l : j.at("moe_layers"))
      info.moe_layers.push_back({whole_number<std::int64_t>(l.at("layer")),
                                 whole_number<std::int64_t>(l.at("num_experts")), number(l.at("top_k"))});
    info.accounting = accounting_from(j.at("accounting"));
    for (const json& entry : j.at("provenance"))
      info.provenance.emplace_back(entry.at(0).get<std::string>(), entry.at(1).get<std::string>());
    info.config_resolved = j.at("config_resolved").get<std::string>();
    return info;
  } catch (const json::exception& error) {
    no_run(path, error);
  } catch (const Error& error) {
    no_run(path, error);
  }
}

}  // namespace moelab
