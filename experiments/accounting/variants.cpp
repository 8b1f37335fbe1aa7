#include "experiments/accounting/variants.hpp"

#include "core/error.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/results/sweep_point.hpp"

#include <algorithm>
#include <cmath>

namespace moelab {

namespace {

std::int64_t figure_of(const Accounting& a, const std::string& match) {
  if (match == "active_flops") return a.forward_flops();
  if (match == "active_params") return a.active_all;
  if (match == "total_params") return a.total;
  fail("[accounting] there is nothing to match by '{}'; known: active_flops, active_params, total_params",
       match);
}

const char* unit_of(const std::string& match) {
  return match == "active_flops"    ? "forward FLOPs a token"
         : match == "active_params" ? "active parameters"
                                    : "parameters";
}

double relative_difference(std::int64_t a, std::int64_t b) {
  return std::abs(static_cast<double>(a) - static_cast<double>(b)) / static_cast<double>(b);
}

// The experts of a mixture that have a width, all of the same.
std::vector<moe::FfnExpertOptions*> experts_with_width(moe::MoeConfig& config) {
  std::vector<moe::FfnExpertOptions*> experts;
  for (moe::ExpertGroup& group : config.experts) {
    if (group.expert.kind() == "ffn") experts.push_back(&group.expert.as<moe::FfnExpertOptions>());
  }
  require(!experts.empty(), "[twin] no group of experts is of kind ffn, so there is no width to solve for");
  for (const moe::FfnExpertOptions* e : experts) {
    require(e->d_ff == experts.front()->d_ff,
            "[twin] the groups of experts have different widths ({} and {}), so there is no one width to "
            "solve for",
            experts.front()->d_ff, e->d_ff);
  }
  return experts;
}

// Sets the width that a twin is solved by, in steps of the granularity so that fine-grained experts stay
// whole.
void set_width(moe::FfnConfig& ffn, Index width) {
  if (ffn.kind == "dense") {
    ffn.dense.d_ff = width;
    return;
  }
  for (moe::FfnExpertOptions* e : experts_with_width(ffn.moe)) e->d_ff = width * ffn.moe.granularity;
}

Index width_of(moe::FfnConfig& ffn) {
  return ffn.kind == "dense" ? ffn.dense.d_ff : experts_with_width(ffn.moe).front()->d_ff;
}

std::string name_of(const Run& run) {
  return run.point ? fmt::format("{}-p{}", run.variant, *run.point) : run.variant;
}

// Runs of the first seed only: one a variant and sweep point.
std::vector<const Run*> distinct_runs(const Experiment& experiment) {
  std::vector<const Run*> runs;
  for (const Run& run : experiment.runs) {
    if (run.seed == experiment.seeds.front()) runs.push_back(&run);
  }
  return runs;
}

}  // namespace

DataShape planned_shape(const DataConfig& config) {
  DataShape shape;
  if (config.kind == "text") {
    shape.seq_len = config.text.seq_len;
    shape.vocab_size = vocab_size_of(config.text.tokenizer);
  } else if (config.kind == "images") {
    shape.seq_len = config.images.num_patches();
    shape.num_features = config.images.patch_size * config.images.patch_size;
    shape.num_classes = config.images.num_classes;
  } else {
    shape.seq_len = config.synthetic.seq_len;
    shape.num_features = config.synthetic.num_features;
    shape.num_targets = config.synthetic.num_targets;
  }
  return shape;
}

Accounting account_run(const RunConfig& config) {
  return account_run(config, planned_shape(config.data).seq_len);
}

Accounting account_run(const RunConfig& config, Index context) {
  return account(*make_model(config.model, planned_shape(config.data)), context);
}

std::vector<CountedModel> count_variants(const Experiment& experiment, std::optional<Index> context) {
  std::vector<CountedModel> counted;
  for (const Run* run : distinct_runs(experiment)) {
    counted.push_back(
        {name_of(*run), context ? account_run(run->config, *context) : account_run(run->config)});
  }
  return counted;
}

Index nearest_width(const std::function<std::int64_t(Index)>& figure, std::int64_t target) {
  constexpr Index kWidest = Index{1} << 32;
  const std::int64_t smallest = figure(1);
  require(smallest <= target, "[twin] already a width of 1 gives {}, more than the {} that are wanted",
          smallest, target);
  require(figure(2) > smallest, "[twin] the width changes nothing: other layers have all the cost");
  Index high = 2;  // figure(low) < target <= figure(high) from here on
  while (figure(high) < target && high < kWidest) high *= 2;
  require(figure(high) >= target, "[twin] even a width of {} gives less than {}", high, target);
  Index low = 1;
  while (high - low > 1) {
    const Index middle = low + (high - low) / 2;
    (figure(middle) < target ? low : high) = middle;
  }
  return target - figure(low) <= figure(high) - target ? low : high;
}

std::string solve_twin(RunConfig& twin, const RunConfig& target, const std::string& match) {
  const std::int64_t wanted = figure_of(account_run(target), match);
  RunConfig trial = twin;
  const auto figure = [&](Index width) {
    set_width(trial.model.ffn, width);
    return figure_of(account_run(trial), match);
  };
  const Index width = nearest_width(figure, wanted);
  const std::int64_t reached = figure(width);
  set_width(twin.model.ffn, width);
  if (reached == wanted) return {};
  return fmt::format("{} = {} gives {} {}, {:.3f} % from the {} that are matched",
                     twin.model.ffn.kind == "dense" ? "d_ff" : "the experts' d_ff", width_of(twin.model.ffn),
                     reached, unit_of(match), 100 * relative_difference(reached, wanted), wanted);
}

const Run* baseline_run(const Experiment& experiment, const Run& run) {
  const std::string baseline = experiment.compare.baseline.value_or(experiment.variants.front());
  const auto settings_of = [&](const Run& r) {
    return r.point ? experiment.points[static_cast<std::size_t>(*r.point)].settings : SweepSettings();
  };
  std::vector<const Run*> candidates;
  std::vector<SweepSettings> points;
  for (const Run* other : distinct_runs(experiment)) {
    if (other->variant != baseline) continue;
    if (run.variant == baseline && other->point == run.point) return other;
    candidates.push_back(other);
    points.push_back(settings_of(*other));
  }
  const auto index = same_point(settings_of(run), points);
  return index ? candidates[*index] : nullptr;
}

std::vector<std::string> comparability_warnings(const Experiment& experiment) {
  std::vector<std::string> warnings;
  const CompareConfig& compare = experiment.compare;
  for (const Run* run : distinct_runs(experiment)) {
    const Run* base = baseline_run(experiment, *run);
    if (base == run) continue;
    if (base == nullptr) {
      warnings.push_back(
          fmt::format("{} is compared with nothing: no one point of the baseline {} has its settings",
                      name_of(*run), compare.baseline.value_or(experiment.variants.front())));
      continue;
    }
    if (compare.match == "none") continue;
    const std::int64_t mine = figure_of(account_run(run->config), compare.match);
    const std::int64_t theirs = figure_of(account_run(base->config), compare.match);
    const double difference = relative_difference(mine, theirs);
    if (difference <= compare.tolerance) continue;
    warnings.push_back(
        fmt::format("{} and the baseline {} are not comparable by {}: {} against {} {}, {:.1f} % apart, "
                    "tolerance {:.1f} %",
                    name_of(*run), name_of(*base), compare.match, mine, theirs, unit_of(compare.match),
                    100 * difference, 100 * compare.tolerance));
  }
  return warnings;
}

}  // namespace moelab
