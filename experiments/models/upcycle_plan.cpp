#include "experiments/models/upcycle_plan.hpp"

#include "core/diagnostics.hpp"
#include "core/error.hpp"
#include "core/fields_reader.hpp"
#include "core/fields_writer.hpp"
#include "core/yaml.hpp"
#include "experiments/config/model_config.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab {

namespace {

using Problems = std::vector<std::string>;

std::string path_of(const CheckpointReader& checkpoint) { return checkpoint.path().string(); }

// The `model:` block that the checkpoint was trained with.
ModelConfig dense_config(const CheckpointReader& checkpoint) {
  Diagnostics diagnostics;
  const std::string& text = checkpoint.training().config;
  const yaml::Node root = yaml::parse(text, yaml::make_source(path_of(checkpoint), text), diagnostics);
  const yaml::Node* node = root.find("model");
  require(diagnostics.num_errors() == 0 && node != nullptr, "[upcycle] {}: its config has no model",
          path_of(checkpoint));
  ModelConfig config;
  read_fields(*node, config, diagnostics);
  require(diagnostics.num_errors() == 0, "[upcycle] {}: its config is of another version:\n{}",
          path_of(checkpoint), diagnostics.render());
  return config;
}

// Keys of the model that shape the function and that both must share.
std::map<std::string, std::string> shared_keys(ModelConfig config) {
  static const std::set<std::string> kOwn{"ffn", "layers", "dropout", "init", "mask_fraction"};
  std::map<std::string, std::string> keys;
  for (const yaml::Node::Entry& entry : write_fields(config).entries) {
    if (kOwn.contains(entry.key)) continue;
    keys[entry.key] = yaml::emit_flow(entry.value);
  }
  return keys;
}

void check_layer(const std::string& layer, const moe::FfnConfig& dense, const moe::FfnConfig& ffn,
                 Problems& problems, UpcyclingPlan& plan) {
  const auto problem = [&](const std::string& text) {
    problems.push_back(fmt::format("{}: {}", layer, text));
  };
  if (dense.kind != "dense") {
    problem("it is a mixture already: upcycling starts from a dense model");
    return;
  }
  const auto check_ffn = [&](const moe::FfnExpertOptions& options, const char* what) {
    if (options.activation != dense.dense.activation) {
      problem(fmt::format("its activation is {}, that of {} is {}", dense.dense.activation, what,
                          options.activation));
    }
    if (options.bias != dense.dense.bias) {
      problem(fmt::format("bias is {}, that of {} is {}", dense.dense.bias, what, options.bias));
    }
  };
  if (ffn.kind == "dense") {
    check_ffn(ffn.dense, "the model");
    if (ffn.dense.d_ff != dense.dense.d_ff) {
      problem(fmt::format("its d_ff is {}, that of the model is {}", dense.dense.d_ff, ffn.dense.d_ff));
    }
    return;
  }
  const moe::MoeConfig moe = ffn.moe.expanded();
  std::set<Index> widths;
  for (const moe::ExpertGroup& group : moe.experts) {
    const auto* options = dynamic_cast<const moe::FfnExpertOptions*>(&group.expert.options());
    if (options == nullptr) {
      problem(fmt::format("experts of kind {} cannot start from an FFN", group.expert.kind()));
      return;
    }
    check_ffn(*options, "the experts");
    widths.insert(options->d_ff);
  }
  if (widths.size() != 1) {
    problem(fmt::format("the experts have different widths: {}", fmt::join(widths, ", ")));
    return;
  }
  const Index d_ff = *widths.begin();
  if (d_ff < 1 || dense.dense.d_ff % d_ff != 0) {
    problem(fmt::format("its d_ff {} is not a multiple of the experts' {}", dense.dense.d_ff, d_ff));
    return;
  }
  const moe::RouterTraits traits = moe.router.options().traits(moe.num_experts());
  plan = {moe.num_experts(), dense.dense.d_ff / d_ff, 1, true};
  plan.factor = static_cast<double>(plan.shards) / traits.scale;
  plan.preserves = traits.normalized && !moe.capacity;
  if (plan.shards == 1) return;
  if (plan.num_experts % plan.shards != 0) {
    problem(fmt::format("{} experts are no whole groups of {} shards", plan.num_experts, plan.shards));
  }
  if (!traits.has_logits || traits.has_noise) {
    problem(
        fmt::format("an expert is one of {} shards of the dense FFN; the router {} does not choose whole "
                    "groups of them, top_k does",
                    plan.shards, moe.router.kind()));
  } else if (!traits.fixed_top_k || traits.choices_per_token % plan.shards != 0) {
    problem(fmt::format(
        "an expert is one of {} shards of the dense FFN, so a token must have a multiple of that many "
        "experts; the router {} gives it {}{}",
        plan.shards, moe.router.kind(), traits.fixed_top_k ? "" : "at most ", traits.choices_per_token));
  }
}

}  // namespace

std::vector<std::string> plan_upcycling(const ModelConfig& config, const CheckpointReader& checkpoint,
                                        std::vector<UpcyclingPlan>& plans) {
  const ModelConfig dense = dense_config(checkpoint);
  Problems problems;
  const auto theirs = shared_keys(dense);
  for (const auto& [key, ours] : shared_keys(config)) {
    const auto it = theirs.find(key);
    const std::string value = it == theirs.end() ? "absent" : it->second;
    if (value != ours) {
      problems.push_back(fmt::format("its model.{} is {}, that of the model is {}", key, value, ours));
    }
  }
  if (!problems.empty()) return problems;  // layers cannot be compared
  plans.assign(static_cast<std::size_t>(config.num_layers), {});
  for (Index layer = 0; layer < config.num_layers; ++layer) {
    check_layer(fmt::format("layer {}", layer), dense.ffn_of(layer), config.ffn_of(layer), problems,
                plans[static_cast<std::size_t>(layer)]);
  }
  return problems;
}

std::vector<std::string> upcycle_problems(const ModelConfig& config, const CheckpointReader& checkpoint) {
  std::vector<UpcyclingPlan> plans;
  return plan_upcycling(config, checkpoint, plans);
}

std::vector<std::string> upcycle_table_problems(Model& model, const CheckpointReader& checkpoint) {
  const std::vector<std::string> names = checkpoint.parameter_names();
  Problems problems;
  for (const NamedParameter& p : parameters(model)) {
    if (p.path.starts_with("layers.")) continue;
    if (std::ranges::find(names, p.path) == names.end()) {
      problems.push_back(fmt::format("it has no parameter {}", p.path));
      continue;
    }
    const Matrix theirs = checkpoint.parameter(p.path);
    if (theirs.rows() == p.parameter->rows() && theirs.cols() == p.parameter->cols()) continue;
    problems.push_back(fmt::format(
        "its {} has shape ({}, {}), that of the model is ({}, {}): vocabulary or sequences have another size",
        p.path, theirs.rows(), theirs.cols(), p.parameter->rows(), p.parameter->cols()));
  }
  return problems;
}

}  // namespace moelab
