#include "core/checkpoint.hpp"
#include "core/error.hpp"
#include "core/fields_reader.hpp"
#include "core/fields_writer.hpp"
#include "core/suggest.hpp"
#include "experiments/config/advice.hpp"
#include "experiments/config/experiment_file.hpp"
#include "experiments/config/interpolate.hpp"
#include "experiments/config/patch.hpp"
#include "experiments/data/corpus.hpp"
#include "experiments/data/missing_data.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/models/upcycle.hpp"
#include "experiments/training/checkpoint_folder.hpp"

#include <algorithm>
#include <array>
#include <map>

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

// Where a path of a domain stands in the file; the closest thing where it stands elsewhere.
Mark mark_of_domain(const Node& tree, const std::string& name) {
  const Node* data = tree.find("data");
  if (data == nullptr) return tree.mark;
  if (const Node* domains = data->find("domains")) {
    for (const Node& domain : domains->items) {
      const Node* its_name = domain.find("name");
      if (its_name == nullptr || its_name->text != name) continue;
      const Node* path = domain.find("path");
      return path == nullptr ? domain.mark : path->mark;
    }
  }
  const Node* corpus = data->find("corpus");
  return corpus == nullptr ? data->mark : corpus->mark;
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

// Names of the metrics that a run records, but for the auxiliary losses.
std::vector<std::string> recorded_metrics(const RunConfig& config) {
  std::vector<std::string> names = {"eval/loss"};
  for (const std::string& domain : config.data.domain_names()) names.push_back("eval/loss/" + domain);
  if (config.data.kind == "text") names.emplace_back("eval/bits_per_byte");
  if (config.data.kind == "images") names.emplace_back("eval/accuracy");
  for (const char* name : {"loss", "lr", "grad_norm", "step_seconds", "tokens_per_second"})
    names.push_back(std::string("train/") + name);
  names.emplace_back("train/active_compute_ratio");
  return names;
}

class Loader {
 public:
  Loader(const std::filesystem::path& file, const LoadOptions& options) : options_(options) {
    source_ = yaml::read_source(file.string());
    experiment_.file = file;
    experiment_.source = source_->text;
    experiment_.overrides = options.overrides;
    experiment_.initial_weights = options.initial_weights;
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
    if (diagnostics_.num_errors() == 0) check_metric();
    diagnostics_.throw_if_errors();
    for (const Run& run : experiment_.runs) experiment_.run_names.push_back(run.name);
    experiment_.warnings = diagnostics_.warnings();
    return std::move(experiment_);
  }

 private:
  void apply_overrides() {
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
    Node interpolated = root_;
    Diagnostics untold;
    interpolate(interpolated, untold);
    for (const char* key : {"version", "name", "description", "seeds", "compare"}) {
      Node* node = around.find(key);
      if (node != nullptr) *node = *interpolated.find(key);
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

  // The comparison would find no value after all runs have been trained.
  void check_metric() {
    const std::string& metric = experiment_.compare.metric;
    std::vector<std::string> known;
    for (const Run& run : experiment_.runs) {
      for (const std::string& name : recorded_metrics(run.config)) {
        if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
      }
    }
    if (std::find(known.begin(), known.end(), metric) != known.end() || metric.starts_with("train/aux_"))
      return;
    const Node* node = find_path(root_, "compare.metric");
    const std::string near = nearest(metric, known);
    diagnostics_.error(node == nullptr ? root_.mark : node->mark,
                       fmt::format("compare.metric: `{}` is recorded by no run", metric),
                       near.empty() ? "known: " + list_of(known) : fmt::format("did you mean `{}`?", near));
  }

  // The patched and interpolated tree of a variant at a point.
  Node tree_of(const VariantPatch& variant, const std::vector<const SweepSetting*>& point,
               Diagnostics& told) {
    Node root = root_;
    for (const Node& patch : variant.patches) apply_patch(root, patch, resolve_tree);
    for (const SweepSetting* setting : point) apply_patch(root, setting->patch, resolve_tree);
    interpolate(root, told);
    return run_tree(root);
  }

  RunConfig read_run(const VariantPatch& variant, const std::vector<const SweepSetting*>& point,
                     Diagnostics& told) {
    const Node tree = tree_of(variant, point, told);
    RunConfig config;
    read_fields(tree, config, told, reader_options());
    if (told.num_errors() == 0) find_data(tree, config, told);
    return config;
  }

  void find_data(const Node& tree, RunConfig& config, Diagnostics& told) {
    const std::filesystem::path folder =
        options_.folder.empty() ? std::filesystem::absolute(experiment_.file).parent_path() : options_.folder;
    find_initial_weights(tree, config, folder, told);
    try {
      resolve_data(config.data, folder);
    } catch (const Error& e) {
      const Node* corpus = find_path(tree, "data.corpus");
      told.error(corpus == nullptr ? tree.mark : corpus->mark, "data.corpus: the corpus file is in error",
                 e.what());
      return;
    }
    if (!options_.look_for_data) return;
    const TokenizerConfig& tokenizer = config.data.text.tokenizer;
    if (config.data.kind == "text" && !tokenizer.file.empty()) {
      try {
        vocab_size_of(tokenizer);
      } catch (const Error& e) {
        const Node* file = find_path(tree, "data.tokenizer.file");
        told.error(file == nullptr ? tree.mark : file->mark, "data.tokenizer.file: it cannot be used",
                   e.what());
        return;
      }
    }
    for (const MissingData& missing : missing_of(config.data)) {
      told.error(mark_of_domain(tree, missing.domain), missing.message());
    }
  }

  // Files are listed once for all runs with the same data.
  const std::vector<MissingData>& missing_of(DataConfig data) {
    const auto [entry, is_new] = missing_.try_emplace(yaml::emit(write_fields(data)));
    if (is_new) entry->second = missing_data(data);
    return entry->second;
  }

  void find_initial_weights(const Node& tree, RunConfig& config, const std::filesystem::path& folder,
                            Diagnostics& told) {
    if (!config.model.init) return;
    const Node* node = find_path(tree, "model.init");
    const Mark mark = node == nullptr ? tree.mark : node->mark;
    std::string& file = config.model.init->upcycle;
    const std::string written = (folder / file).lexically_normal().string();
    file = written;
    if (!options_.look_for_data) return;
    if (const auto known = options_.initial_weights.find(written); known != options_.initial_weights.end()) {
      file = known->second;
      return;
    }
    try {
      // Not by way of `latest`, which will mean another one.
      const CheckpointReader checkpoint(std::filesystem::canonical(checkpoint_at(file)));
      file = checkpoint.path().string();
      experiment_.initial_weights[written] = file;
      for (const std::string& problem : upcycle_problems(config.model, checkpoint)) {
        told.error(mark, fmt::format("model.init: the model cannot start from {}: {}", file, problem));
      }
    } catch (const Error& e) {
      told.error(mark, fmt::format("model.init: {}", e.what()));
    }
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
        experiment_.runs.push_back(std::move(run));
      }
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
  std::map<std::string, std::vector<MissingData>> missing_;  // by data block
  Experiment experiment_;
};

}  // namespace

Experiment load_experiment(const std::filesystem::path& file, const LoadOptions& options) {
  return Loader(file, options).load();
}

}  // namespace moelab
