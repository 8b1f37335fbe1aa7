#include "core/error.hpp"
#include "core/fields_reader.hpp"
#include "core/suggest.hpp"
#include "experiments/config/advice.hpp"
#include "experiments/config/base_tree.hpp"
#include "experiments/config/check_records.hpp"
#include "experiments/config/experiment_file.hpp"
#include "experiments/config/interpolate.hpp"
#include "experiments/config/patch.hpp"
#include "experiments/config/run_files.hpp"
#include "experiments/config/run_list.hpp"

#include <algorithm>

namespace moelab {

using yaml::Node;

namespace {

const ReaderOptions& reader_options() {
  static const ReaderOptions options{advise_on_key};
  return options;
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
    apply_overrides(root_, options_.overrides, diagnostics_);
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
      diagnostics_.error(mark_of("compare.baseline"),
                         fmt::format("compare.baseline: `{}` is not a variant", baseline),
                         did_you_mean(baseline, names));
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
    RunList runs(experiment_, root_.mark, diagnostics_);
    for (const VariantPatch& variant : variants_) {
      const std::vector<std::vector<const SweepSetting*>> points = points_of(blocks_, variant.name);
      if (!runs.has_room_for(points.size() * file_.seeds.size())) return;
      for (const std::vector<const SweepSetting*>& point : points) {
        Diagnostics told;
        RunConfig config = read_run(variant, point, told);
        const bool ready =
            told.num_errors() == 0 && (variant.twin_of.empty() || solve_twin(variant, point, config, told));
        diagnostics_.merge(told, base,
                           variant.name == "base" ? "" : fmt::format("in variant {}", variant.name));
        if (ready && diagnostics_.num_errors() == 0 && !runs.add(variant, point, config)) return;
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

  const LoadOptions& options_;
  std::shared_ptr<const Source> source_;
  Diagnostics diagnostics_;
  Node root_;
  ExperimentFile file_;
  std::vector<VariantPatch> variants_;
  std::vector<SweepBlock> blocks_;
  RunFiles files_;
  Experiment experiment_;
};

}  // namespace

Experiment load_experiment(const std::filesystem::path& file, const LoadOptions& options) {
  return Loader(file, options).load();
}

}  // namespace moelab
