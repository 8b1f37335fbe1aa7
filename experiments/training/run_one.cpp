#include "experiments/training/run_one.hpp"

#include "core/error.hpp"
#include "experiments/accounting/accounting.hpp"
#include "experiments/models/make_model.hpp"
#include "experiments/training/resources.hpp"

#include <chrono>
#include <exception>

#include <nlohmann/json.hpp>

namespace moelab {

namespace {

// The accounting as the results file holds it.
AccountingTable table_of(const Accounting& accounting) {
  AccountingTable table;
  for (const ModuleRow& row : accounting.modules) {
    table.rows.push_back({row.group, row.group, row.params_total, static_cast<double>(row.params_active),
                          static_cast<double>(row.flops_forward_per_token)});
  }
  table.params_total = accounting.total;
  table.params_active = static_cast<double>(accounting.active_all);
  table.params_active_without_input_embedding =
      static_cast<double>(accounting.active_without_input_embedding);
  table.params_active_without_embeddings = static_cast<double>(accounting.active_without_embeddings);
  table.flops_forward_per_token = static_cast<double>(accounting.forward_flops());
  table.flops_forward_per_token_causal = static_cast<double>(accounting.forward_flops_causal());
  table.active_compute_ratio = accounting.active_compute_ratio();
  for (const auto& [name, meaning] : Accounting::conventions()) {
    table.conventions += fmt::format("{}: {}\n", name, meaning);
  }
  return table;
}

std::string settings_json(const SweepPoint& point) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  for (const auto& [key, value] : point.settings) settings[key] = value;
  return settings.dump();
}

RunInfo info_of(const Run& run, const SweepPoint& point, Model& model, const Dataset& data,
                const std::vector<std::pair<std::string, std::string>>& provenance) {
  RunInfo info;
  info.name = run.name;
  info.variant = run.variant;
  info.seed = static_cast<std::uint64_t>(run.seed);
  info.sweep_point = settings_json(point);
  info.config_resolved = run.resolved_yaml;
  info.dataset = run.config.data.kind;
  info.domains = data.domains();
  info.moe_layers = moe_layers(model);
  info.accounting = table_of(account(model, data.seq_len()));
  info.provenance = provenance;
  return info;
}

}  // namespace

RunResult run_one(const Run& run, const SweepPoint& point, const Dataset& data,
                  const std::filesystem::path& folder,
                  const std::vector<std::pair<std::string, std::string>>& provenance,
                  const TrainerHooks& hooks) {
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Model> model = make_model(run.config.model, shape_of(data));
  Recorder recorder = Recorder::create(folder, info_of(run, point, *model, data, provenance));
  RunResult result;
  std::int64_t steps = 0;
  try {
    Trainer trainer(run, *model, data, recorder, hooks);
    try {
      result.status = trainer.train();
      if (result.status == RunStatus::interrupted)
        result.reason = fmt::format("stopped at step {}", trainer.step());
    } catch (const NonFiniteError& e) {
      result = {RunStatus::diverged, e.what()};
    }
    steps = trainer.step();
  } catch (const std::exception& e) {
    result = {RunStatus::failed, e.what()};
  }
  Resources resources;
  resources.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  resources.peak_rss_bytes = peak_resident_bytes();
  resources.train_flops = 3 * recorder.data().info.accounting.flops_forward_per_token *
                          static_cast<double>(steps * run.config.train.batch_tokens);
  recorder.set_resources(resources);
  recorder.set_status(result.status, result.reason);
  recorder.write_snapshot();
  return result;
}

}  // namespace moelab
