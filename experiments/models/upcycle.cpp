#include "experiments/models/upcycle.hpp"

#include "core/diagnostics.hpp"
#include "core/error.hpp"
#include "core/fields_reader.hpp"
#include "core/fields_writer.hpp"
#include "core/random.hpp"
#include "core/yaml.hpp"
#include "experiments/config/model_config.hpp"
#include "moe/routers/projection.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
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

// How the experts of a layer come from the dense FFN.
struct Plan {
  Index num_experts = 0;
  Index shards = 1;   // G
  double factor = 1;  // on what comes out of an expert: G / scale
  bool preserves = true;
};

void check_layer(const std::string& layer, const moe::FfnConfig& dense, const moe::FfnConfig& ffn,
                 Problems& problems, Plan& plan) {
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

Problems problems_of(const ModelConfig& config, const CheckpointReader& checkpoint,
                     std::vector<Plan>& plans) {
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

// Copies a checkpoint into the parameters of a model, one after another.
class Upcycling {
 public:
  Upcycling(const CheckpointReader& checkpoint, const std::vector<Plan>& plans, double noise,
            std::uint64_t seed)
      : checkpoint_(checkpoint), plans_(plans), noise_(noise), seed_(seed) {
    for (const std::string& name : checkpoint.parameter_names()) names_.insert(name);
  }

  void set(const NamedParameter& p) {
    const Place place = place_of(p.path);
    MatrixView value = p.parameter->value();
    if (place.part == "router") {
      if (!moe::Projection::has_hidden_rows(place.name)) tie_shards(value, plans_[place.layer]);
    } else if (place.part == "shared") {
      if (place.name == "w2" || place.name == "b2") value.setZero();
    } else if (place.part == "experts") {
      set_expert(p.path, place, value);
    } else {
      const Matrix source = read(p.path);
      require(source.rows() == value.rows() && source.cols() == value.cols(),
              "[upcycle] {}: {} has shape ({}, {}), the model wants ({}, {})", path_of(checkpoint_), p.path,
              source.rows(), source.cols(), value.rows(), value.cols());
      value = source;
    }
    p.parameter->mark_changed();
  }

  void require_all_used() const {
    for (const std::string& name : names_) {
      require(used_.contains(name), "[upcycle] {}: parameter {} has no place in the model",
              path_of(checkpoint_), name);
    }
  }

 private:
  // layers.L.ffn.PART[.E].NAME of a mixture; an empty part: any other parameter.
  struct Place {
    std::size_t layer = 0;
    std::string part, name;
    Index expert = 0;
  };

  Place place_of(const std::string& path) const {
    Place place;
    for (std::size_t layer = 0; layer < plans_.size(); ++layer) {
      const std::string prefix = fmt::format("layers.{}.ffn.", layer);
      if (plans_[layer].num_experts == 0 || !path.starts_with(prefix)) continue;
      const std::string rest = path.substr(prefix.size());
      place.layer = layer;
      place.part = rest.substr(0, rest.find('.'));
      place.name = rest.substr(rest.rfind('.') + 1);
      if (place.part == "experts") place.expert = std::stoll(rest.substr(place.part.size() + 1));
    }
    return place;
  }

  Matrix read(const std::string& name) {
    require(names_.contains(name), "[upcycle] {}: has no parameter {}, which the model wants",
            path_of(checkpoint_), name);
    used_.insert(name);
    return checkpoint_.parameter(name);
  }

  // Experts of a group have the same logits: theirs are the rows of the first.
  static void tie_shards(MatrixView value, const Plan& plan) {
    for (Index e = 0; e < plan.num_experts; ++e) {
      const Index first = e - e % plan.shards;
      if (e == first) continue;
      if (value.rows() == plan.num_experts) value.row(e) = value.row(first).eval();
      if (value.rows() == 1 && value.cols() == plan.num_experts) value(0, e) = value(0, first);
    }
  }

  void set_expert(const std::string& path, const Place& place, MatrixView value) {
    const Plan& plan = plans_[place.layer];
    const Matrix source = read(fmt::format("layers.{}.ffn.{}", place.layer, place.name));
    const bool is_bias = place.name.starts_with('b');
    const bool is_output = place.name == "w2" || place.name == "b2";
    // The inner width of the dense FFN runs along the columns of w2 and of b1 and b3, along the rows of w1,
    // w3.
    const Index rows = value.rows() * (is_bias || is_output ? 1 : plan.shards);
    const Index cols = value.cols() * (is_bias != is_output ? plan.shards : 1);
    require(source.rows() == rows && source.cols() == cols,
            "[upcycle] {}: layers.{}.ffn.{} has shape ({}, {}), the experts want ({}, {})",
            path_of(checkpoint_), place.layer, place.name, source.rows(), source.cols(), rows, cols);
    const Index shard = place.expert % plan.shards;
    const Index first_row = source.rows() > value.rows() ? shard * value.rows() : 0;
    const Index first_col = source.cols() > value.cols() ? shard * value.cols() : 0;
    // A whole group adds its output bias up, so each of its shards has a share of it.
    const double share = place.name == "b2" ? 1.0 / static_cast<double>(plan.shards) : 1.0;
    const double factor = is_output ? plan.factor * share : 1.0;
    value = static_cast<Scalar>(factor) * source.block(first_row, first_col, value.rows(), value.cols());
    if (noise_ > 0 && !is_bias) add_noise(path, value);
  }

  void add_noise(const std::string& path, MatrixView value) const {
    const Scalar mean = value.mean();
    const double deviation = std::sqrt(static_cast<double>((value.array() - mean).square().mean()));
    Matrix noise(value.rows(), value.cols());
    random::fill_normal(noise, random::Stream(seed_, "upcycle/" + path), noise_ * deviation);
    value += noise;
  }

  const CheckpointReader& checkpoint_;
  const std::vector<Plan>& plans_;
  double noise_;
  std::uint64_t seed_;
  std::set<std::string> names_, used_;
};

}  // namespace

std::vector<std::string> upcycle_problems(const ModelConfig& config, const CheckpointReader& checkpoint) {
  std::vector<Plan> plans;
  return problems_of(config, checkpoint, plans);
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

std::vector<std::string> upcycle(Model& model, const ModelConfig& config, const CheckpointReader& checkpoint,
                                 double noise, std::uint64_t seed) {
  std::vector<Plan> plans;
  const Problems problems = problems_of(config, checkpoint, plans);
  if (!problems.empty()) {
    throw ConfigError(fmt::format("[upcycle] the model cannot start from {}:\n  {}", path_of(checkpoint),
                                  fmt::join(problems, "\n  ")));
  }
  Upcycling upcycling(checkpoint, plans, noise, seed);
  for (const NamedParameter& p : parameters(model)) upcycling.set(p);
  upcycling.require_all_used();

  std::vector<std::string> told{fmt::format("starts from the dense checkpoint {} of step {}",
                                            path_of(checkpoint), checkpoint.training().step)};
  for (std::size_t layer = 0; layer < plans.size(); ++layer) {
    if (plans[layer].num_experts == 0 || plans[layer].preserves) continue;
    told.push_back(
        fmt::format("layer {}: the weights of a token do not always sum to `scale` (normalize is off, or a "
                    "capacity drops "
                    "choices), so the function is not that of the checkpoint at the start",
                    layer));
  }
  return told;
}

}  // namespace moelab
