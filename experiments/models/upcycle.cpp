#include "experiments/models/upcycle.hpp"

#include "core/error.hpp"
#include "core/random.hpp"
#include "experiments/config/model_config.hpp"
#include "experiments/models/upcycle_plan.hpp"
#include "moe/routers/projection.hpp"

#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab {

namespace {

std::string path_of(const CheckpointReader& checkpoint) { return checkpoint.path().string(); }

// Copies a checkpoint into the parameters of a model, one after another.
class Upcycling {
 public:
  Upcycling(const CheckpointReader& checkpoint, const std::vector<UpcyclingPlan>& plans, double noise,
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
  static void tie_shards(MatrixView value, const UpcyclingPlan& plan) {
    for (Index e = 0; e < plan.num_experts; ++e) {
      const Index first = e - e % plan.shards;
      if (e == first) continue;
      if (value.rows() == plan.num_experts) value.row(e) = value.row(first).eval();
      if (value.rows() == 1 && value.cols() == plan.num_experts) value(0, e) = value(0, first);
    }
  }

  void set_expert(const std::string& path, const Place& place, MatrixView value) {
    const UpcyclingPlan& plan = plans_[place.layer];
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
  const std::vector<UpcyclingPlan>& plans_;
  double noise_;
  std::uint64_t seed_;
  std::set<std::string> names_, used_;
};

}  // namespace

std::vector<std::string> upcycle(Model& model, const ModelConfig& config, const CheckpointReader& checkpoint,
                                 double noise, std::uint64_t seed) {
  std::vector<UpcyclingPlan> plans;
  const std::vector<std::string> problems = plan_upcycling(config, checkpoint, plans);
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
