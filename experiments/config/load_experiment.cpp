#include "core/error.hpp"
#include "core/fields_reader.hpp"
#include "core/fields_writer.hpp"
#include "core/suggest.hpp"
#include "experiments/config/advice.hpp"
#include "experiments/config/check_records.hpp"
#include "experiments/config/experiment_file.hpp"
#include "experiments/config/interpolate.hpp"
#include "experiments/config/patch.hpp"
#include "experiments/config/run_files.hpp"
#include "experiments/results/run_store.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace moelab {

using yaml::Node;

namespace {

constexpr std::size_t kMaxRuns = 10'000;

const ReaderOptions& reader_options() {
  static const ReaderOptions options{advise_on_key};
  return options;
}

// The blocks of a run out of the tree of a whole file.
Node run_tree(const Node& root) {
  Node tree = Node::mapping();
  tree.mark = root.mark;
  for (const std::string& block : run_blocks()) {
    if (const Node::Entry* entry = root.find_entry(block)) tree.entries.push_back(*entry);
  }
  return tree;
}

// With every default written out. Errors are told elsewhere.
Node resolve_tree(const Node& tree) {
  Diagnostics untold;
  Node copy = run_tree(tree);
  interpolate(copy, untold);
  RunConfig config;
  read_fields(copy, config, untold, reader_options());
  return write_fields(config);
}

// 1500000 -> 1.5M, for names: exact, with the largest unit that leaves at most three decimals.
std::string short_tokens(Index tokens) {
  constexpr std::array<std::pair<const char*, Index>, 3> kUnits = {
      {{"G", 1'000'000'000}, {"M", 1'000'000}, {"k", 1000}}};
  for (const auto& [unit, size] : kUnits) {
    if (tokens >= size && tokens % (size / 1000) == 0) {
      return fmt::format("{}{}", static_cast<double>(tokens) / static_cast<double>(size), unit);
    }
  }
  return fmt::format("{}", tokens);
}

class Loader {
 public:
  Loader(const std::filesystem::path& file, const LoadOptions& options)
      : options_(options),
        files_(options,
               options.folder.empty() ? std::filesystem::absolute(file).parent_path() : options.folder) {
    source_ = yaml::read_source(file.string());
    experiment_.file = file;
    experiment_.source = source_->text;
    experiment_.overrides = options.overrides;
  }

  Experiment load() {
    root_ = yaml::parse(source_->text, source_, diagnostics_);
    diagnostics_.throw_if_errors();  // what is below would only be misled
    if (root_.is_null()) {
      diagnostics_.error({source_, 1, 1}, "the experiment is empty",
                         "it needs at least `version`, `data`, `model` and `train`; `moelab new` writes one");
      diagnostics_.throw_if_errors();
    }
    apply_overrides();
    read_file();
    make_runs();
    if (diagnostics_.num_errors() == 0) check_metric(experiment_, root_, diagnostics_);
    warn_of_pairs(experiment_, root_, diagnostics_);
    diagnostics_.throw_if_errors();
    for (const Run& run : experiment_.runs) experiment_.run_names.push_back(run.name);
    experiment_.initial_weights = files_.initial_weights();
    experiment_.initial_checksums = files_.initial_checksums();
    experiment_.warnings = diagnostics_.warnings();
    return std::move(experiment_);
  }

 private:
  void apply_overrides() {
    // Written out, so that an override finds what a dotted key sets.
    if (Node* variants = root_.find("variants"); variants != nullptr && !options_.overrides.empty()) {
      for (Node::Entry& variant : variants->entries) {
        variant.value = expand_dotted_keys(variant.value, diagnostics_);
      }
    }
    int number = 0;
    for (const std::string& text : options_.overrides) {
      const Node patch = parse_override(text, ++number, diagnostics_);
      if (root_.is_mapping()) apply_patch(root_, patch, resolve_tree);
    }
  }

  void read_file() {
    // Blocks are interpolated run by run; what stands around them, here.
    Node around = root_;
    for (const std::string& block : run_blocks()) {
      if (Node* node = around.find(block)) *node = Node();
    }
    for (const char* key : {"version", "name", "description", "seeds", "compare"}) {
      if (Node* node = around.find(key)) interpolate(*node, root_, diagnostics_);
    }
    read_fields(around, file_, diagnostics_, reader_options());

    variants_ = read_variants(file_.variants, diagnostics_);
    blocks_ = read_sweep(file_.sweep, variants_, diagnostics_);
    experiment_.name = file_.name.empty() ? experiment_.file.stem().string() : file_.name;
    experiment_.description = file_.description;
    experiment_.seeds = file_.seeds;
    experiment_.compare = file_.compare;
    for (const VariantPatch& variant : variants_) experiment_.variants.push_back(variant.name);
    check_around();
  }

  void check_around() {
    const auto mark_of = [&](const char* path) {
      const Node* node = find_path(root_, path);
      return node == nullptr ? root_.mark : node->mark;
    };
    if (experiment_.name.find('/') != std::string::npos || experiment_.name.starts_with('.')) {
      diagnostics_.error(mark_of("name"), fmt::format("name: `{}` cannot name a folder", experiment_.name));
    }
    std::vector<std::int64_t> seeds = file_.seeds;
    std::sort(seeds.begin(), seeds.end());
    if (seeds.empty()) diagnostics_.error(mark_of("seeds"), "seeds: at least one seed is needed");
    if (std::adjacent_find(seeds.begin(), seeds.end()) != seeds.end()) {
      diagnostics_.error(mark_of("seeds"), "seeds: a seed stands twice");
    }
    const std::vector<std::string>& names = experiment_.variants;
    const std::string baseline = file_.compare.baseline.value_or(names.empty() ? "" : names.front());
    if (!names.empty() && std::find(names.begin(), names.end(), baseline) == names.end()) {
      const std::string near = nearest(baseline, names);
      diagnostics_.error(mark_of("compare.baseline"),
                         fmt::format("compare.baseline: `{}` is not a variant", baseline),
                         near.empty() ? "known: " + list_of(names) : fmt::format("did you mean `{}`?", near));
    }
  }

  // The patched and interpolated tree of a variant at a point.
  Node tree_of(const VariantPatch& variant, const std::vector<const SweepSetting*>& point,
               Diagnostics& told) {
    Node root = root_;
    for (const Node& patch : variant.patches) apply_patch(root, patch, resolve_tree);
    for (const SweepSetting* setting : point) apply_patch(root, setting->patch, resolve_tree);
    // Other variants and sweep points may refer to what this one does not have.
    Node tree = run_tree(root);
    interpolate(tree, root, told);
    return tree;
  }

  RunConfig read_run(const VariantPatch& variant, const std::vector<const SweepSetting*>& point,
                     Diagnostics& told) {
    const Node tree = tree_of(variant, point, told);
    RunConfig config;
    read_fields(tree, config, told, reader_options());
    if (told.num_errors() == 0) files_.find(tree, config, told);
    return config;
  }

  void make_runs() {
    Diagnostics base;
    if (variants_.size() > 1 || !variants_.front().patches.empty()) {
      VariantPatch unpatched;
      read_run(unpatched, {}, base);
    }
    for (const VariantPatch& variant : variants_) {
      for (const std::vector<const SweepSetting*>& point : points_of(blocks_, variant.name)) {
        Diagnostics told;
        RunConfig config = read_run(variant, point, told);
        const bool ready =
            told.num_errors() == 0 && (variant.twin_of.empty() || solve_twin(variant, point, config, told));
        diagnostics_.merge(told, base,
                           variant.name == "base" ? "" : fmt::format("in variant {}", variant.name));
        if (ready && diagnostics_.num_errors() == 0) add_runs(variant, point, config);
        if (experiment_.runs.size() > kMaxRuns) {
          diagnostics_.error(root_.mark, fmt::format("the experiment has more than {} runs", kMaxRuns));
          return;
        }
      }
    }
  }

  bool solve_twin(const VariantPatch& variant, const std::vector<const SweepSetting*>& point,
                  RunConfig& config, Diagnostics& told) {
    const auto target = std::find_if(variants_.begin(), variants_.end(),
                                     [&](const VariantPatch& v) { return v.name == variant.twin_of; });
    Diagnostics of_target;
    const RunConfig target_config = read_run(*target, point, of_target);
    if (of_target.num_errors() > 0) return false;  // told where the target is read
    try {
      require(options_.solve_twin != nullptr, "the width of a twin cannot be solved for here");
      const std::string nearness = options_.solve_twin(config, target_config, variant.match);
      if (!nearness.empty())
        told.warning(variant.twin_mark, fmt::format("twin_of {}: {}", variant.twin_of, nearness));
    } catch (const Error& e) {
      told.error(variant.twin_mark, fmt::format("twin_of {}: {}", variant.twin_of, e.what()));
      return false;
    }
    return true;
  }

  void add_runs(const VariantPatch& variant, const std::vector<const SweepSetting*>& point,
                RunConfig& config) {
    std::vector<std::pair<std::string, std::string>> settings;
    for (const SweepSetting* setting : point) {
      settings.insert(settings.end(), setting->entries.begin(), setting->entries.end());
    }
    std::vector<Run> lengths;  // one, or one a branch
    if (!config.train.branches) {
      const std::optional<Index> index = point_index(settings);
      lengths.push_back({index ? fmt::format("-p{}", *index) : "", variant.name, 0, index, config, ""});
    } else {
      lengths = branches_of(variant.name, settings, config);
    }
    for (Run& run : lengths) run.resolved_yaml = yaml::emit(write_fields(run.config));
    for (const std::int64_t seed : file_.seeds) {
      const std::string stem = fmt::format("{}-s{}", variant.name, seed);
      for (Run run : lengths) {
        run.seed = seed;
        run.name = stem + run.name;
        if (run.trunk_step > 0) run.trunk = stem + lengths.back().name;
        check_name(run.name, variant, point);
        experiment_.runs.push_back(std::move(run));
      }
    }
  }

  // Runs are folders, so each has a name of its own that fits.
  void check_name(const std::string& name, const VariantPatch& variant,
                  const std::vector<const SweepSetting*>& point) {
    if (!names_.insert(name).second) {
      const Mark mark = point.empty() ? root_.mark : point.back()->patch.mark;
      diagnostics_.error(mark, fmt::format("sweep: a point stands twice; both would be the run {}", name));
    }
    if (name.size() > kLongestName) {
      diagnostics_.error(
          variant.mark.source == nullptr ? root_.mark : variant.mark,
          fmt::format("the run {} has a name of {} bytes, it may have {}", name, name.size(), kLongestName),
          "give the variant a shorter name");
    }
  }

  // Each length is a point: it differs from the others in max_tokens. Names are without the seed yet.
  std::vector<Run> branches_of(const std::string& variant,
                               const std::vector<std::pair<std::string, std::string>>& settings,
                               const RunConfig& config) {
    std::vector<Run> runs;
    std::vector<std::int64_t> branch_steps;
    for (const Index tokens : *config.train.branches) {
      std::vector<std::pair<std::string, std::string>> all = settings;
      all.emplace_back("train.max_tokens", fmt::format("{}", tokens));
      const std::optional<Index> index = point_index(all);
      Run run{(settings.empty() ? "" : fmt::format("-p{}", *index)) + "-t" + short_tokens(tokens),
              variant,
              0,
              index,
              config,
              ""};
      run.config.train.branches.reset();
      run.config.train.max_tokens = tokens;
      const bool is_trunk = tokens == config.train.branches->back();
      if (!is_trunk) run.trunk_step = run.config.train.num_stable_steps();
      if (run.trunk_step > 0) branch_steps.push_back(run.trunk_step);
      runs.push_back(std::move(run));
    }
    runs.back().branch_steps = std::move(branch_steps);
    return runs;
  }

  // The number of a point among those that are different.
  std::optional<Index> point_index(std::vector<std::pair<std::string, std::string>> settings) {
    if (settings.empty()) return std::nullopt;
    SweepPoint point{std::move(settings)};
    std::vector<SweepPoint>& points = experiment_.points;
    const auto known = std::find_if(points.begin(), points.end(),
                                    [&](const SweepPoint& p) { return p.settings == point.settings; });
    const Index index = known - points.begin();
    if (known == points.end()) points.push_back(std::move(point));
    return index;
  }

  const LoadOptions& options_;
  std::shared_ptr<const Source> source_;
  Diagnostics diagnostics_;
  Node root_;
  ExperimentFile file_;
  std::vector<VariantPatch> variants_;
  std::vector<SweepBlock> blocks_;
  RunFiles files_;
  std::set<std::string> names_;  // of runs
  Experiment experiment_;
};

}  // namespace

Experiment load_experiment(const std::filesystem::path& file, const LoadOptions& options) {
  return Loader(file, options).load();
}

}  // namespace moelab
