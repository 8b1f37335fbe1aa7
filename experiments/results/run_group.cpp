#include "experiments/results/run_group.hpp"

#include "core/error.hpp"
#include "experiments/results/group_parts.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace moelab {

namespace {

// What the number of an auxiliary loss is: papers and libraries differ in conventions under the same name.
std::string meaning_of_loss(const std::string& name) {
  static const std::map<std::string_view, std::string_view> kMeanings = {
      {"load_balance",
       "E sum_e f_e P_e, f the share of choices before drops, P the mean of normalised scores: "
       "1 at even f for any k"},
      {"z", "mean over tokens of logsumexp(logits)^2"},
      {"importance_cv2", "variance / mean^2 over experts of the summed normalised scores"},
      {"load_cv2", "variance / mean^2 over experts of the smooth load of noisy top-k"},
      {"entropy", "sum_e P_e log P_e, P the mean of normalised scores: -log E at even P"},
      {"expert_diversity", "mean over tokens of the pairwise cosine of the chosen experts' outputs"},
      {"relu_sparsity", "mean over tokens of the sum of the weights"},
  };
  const auto it = kMeanings.find(name);
  return fmt::format(
      "{}; mean over layers and micro-batches, without its weight",
      it == kMeanings.end() ? fmt::format("auxiliary loss {}", name) : std::string(it->second));
}

void add_train(hdf5::Group& run, const std::vector<TrainRecord>& records) {
  if (records.empty()) return;
  hdf5::Group& g = run.group("train");
  default_plot(g, "loss", "step");
  step_and_tokens(g, records);
  const auto series = [&](const char* name, double TrainRecord::*member, hdf5::Meaning meaning) {
    g.series(name, "step", column(records, member), std::move(meaning));
  };
  series("time", &TrainRecord::time, {"s", "training time, evaluations left out"});
  series("loss", &TrainRecord::loss, {"nat", "mean task loss per target"});
  std::vector<std::string> names;
  for (const TrainRecord& r : records)
    for (const auto& [name, value] : r.auxiliary_losses)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  for (const std::string& name : names) {
    std::vector<double> values(records.size(), kNotMeasured);
    for (std::size_t i = 0; i < records.size(); ++i)
      for (const auto& [other, value] : records[i].auxiliary_losses)
        if (other == name) values[i] = value;
    g.series("aux_" + name, "step", std::move(values), {"1", meaning_of_loss(name)});
  }
  series("lr", &TrainRecord::lr, {"1", "learning rate"});
  series("grad_norm", &TrainRecord::grad_norm, {"1", "gradient norm before clipping"});
  series("step_seconds", &TrainRecord::step_seconds, {"s", "time of a step"});
  series("tokens_per_second", &TrainRecord::tokens_per_second, {"token/s", "training throughput"});
  series("active_compute_ratio", &TrainRecord::active_compute_ratio,
         {"1", "FFN FLOPs as routed / of all experts"});
}

void add_eval(hdf5::Group& run, const std::vector<EvalRecord>& records,
              const std::vector<std::string>& domains) {
  if (records.empty()) return;
  hdf5::Group& g = run.group("eval");
  default_plot(g, "loss", "step");
  step_and_tokens(g, records);
  g.series("time", "step", column(records, &EvalRecord::time), {"s", "training time, evaluations left out"});
  g.series("loss", "step", column(records, &EvalRecord::loss),
           {"nat", "mean task loss per target, held-out data"});
  g.series("bits_per_byte", "step", column(records, &EvalRecord::bits_per_byte),
           {"bit", "held-out loss per byte of text"});
  g.series("accuracy", "step", column(records, &EvalRecord::accuracy),
           {"1", "share of the held-out sequences whose class is right"});
  if (domains.empty()) return;
  std::vector<double> values;
  for (const EvalRecord& r : records)
    for (std::size_t d = 0; d < domains.size(); ++d)
      values.push_back(d < r.loss_by_domain.size() ? r.loss_by_domain[d] : kNotMeasured);
  g.series("domain", "domain", domains, {"", "domain of the data"});
  g.array("loss_by_domain", {"step", "domain"}, {records.size(), domains.size()}, std::move(values),
          {"nat", "held-out loss by domain"});
}

void add_accounting(hdf5::Group& run, const AccountingTable& a) {
  hdf5::Group& g = run.group("accounting");
  g.attribute("params_total", a.params_total);
  g.attribute("params_active", a.params_active);
  g.attribute("params_active_without_input_embedding", a.params_active_without_input_embedding);
  g.attribute("params_active_without_embeddings", a.params_active_without_embeddings);
  g.attribute("flops_forward_per_token", a.flops_forward_per_token);
  g.attribute("flops_forward_per_token_causal", a.flops_forward_per_token_causal);
  g.attribute("active_compute_ratio", a.active_compute_ratio);
  g.attribute("conventions", a.conventions);
  if (a.rows.empty()) return;
  g.series("module", "module", column(a.rows, &AccountingRow::module), {"", "path of the module"});
  g.series("kind", "module", column(a.rows, &AccountingRow::kind), {"", "what the module is"});
  g.series("params_total", "module", column(a.rows, &AccountingRow::params_total), {"1", "parameters"});
  g.series("params_active", "module", column(a.rows, &AccountingRow::params_active),
           {"1", "parameters a token uses"});
  g.series("flops_forward_per_token", "module", column(a.rows, &AccountingRow::flops_forward_per_token),
           {"1", "forward FLOPs of a token in products, without attention scores; one multiply-add = 2"});
}

}  // namespace

hdf5::Group run_group(const RunData& data) {
  const RunInfo& info = data.info;
  hdf5::Group run;
  run.attribute("NX_class", std::string("NXentry"));
  if (!data.eval.empty()) run.attribute("default", std::string("eval"));
  run.attribute("variant", info.variant);
  run.attribute("seed", static_cast<std::int64_t>(info.seed));
  run.attribute("sweep_point", info.sweep_point);
  run.attribute("status", to_string(data.status));
  run.attribute("status_reason", data.status_reason);
  run.attribute("dataset", info.dataset);
  run.text("config_resolved", info.config_resolved, "configuration of the run, YAML");
  add_train(run, data.train);
  add_eval(run, data.eval, info.domains);
  add_routing(run, data);
  add_statistics(run, data);
  add_samples(run, data);
  add_accounting(run, info.accounting);
  if (!info.provenance.empty()) {
    hdf5::Group& g = run.group("provenance");
    for (const auto& [key, value] : info.provenance) g.attribute(key, value);
  }
  return run;
}

}  // namespace moelab
