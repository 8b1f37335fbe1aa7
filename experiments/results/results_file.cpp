#include "experiments/results/results_file.hpp"

#include "core/damaged_file.hpp"
#include "core/sha256.hpp"
#include "experiments/compare/comparison.hpp"
#include "experiments/results/provenance.hpp"
#include "experiments/results/run_group.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace moelab {

namespace {

constexpr const char* kFormat = "moelab-results";
constexpr const char* kVersion = "1.0";

hdf5::Group root_group(const std::string& title) {
  hdf5::Group root;
  root.attribute("Conventions", std::string("CF-1.10"));
  root.attribute("format", std::string(kFormat));
  root.attribute("format_version", std::string(kVersion));
  root.attribute("title", title);
  root.attribute("created", utc_now());
  root.attribute("NX_class", std::string("NXroot"));
  return root;
}

hdf5::Group experiment_group(const ExperimentInfo& e) {
  hdf5::Group g;
  g.name = "experiment";
  g.attribute("name", e.name);
  g.attribute("config_sha256", sha256_hex(e.config_source));
  g.attribute("baseline", e.baseline);
  g.attribute("metric", e.metric);
  g.attribute("confidence", e.confidence);
  g.text("description", e.description, "the question");
  g.text("config_source", e.config_source, "the experiment file");
  if (!e.overrides.empty())
    g.series("overrides", "override", e.overrides, {"", "overrides on the command line"});
  return g;
}

using Provenance = std::vector<std::pair<std::string, std::string>>;

// What all runs agree on; of the rest it says how many values there are.
hdf5::Group common_provenance(const std::vector<Provenance>& all) {
  std::vector<std::string> keys;
  std::map<std::string, std::set<std::string>> values;
  for (const Provenance& one : all) {
    for (const auto& [key, value] : one) {
      if (!values.contains(key)) keys.push_back(key);
      values[key].insert(value);
    }
  }
  hdf5::Group g;
  g.name = "provenance";
  for (const std::string& key : keys) {
    const std::set<std::string>& v = values[key];
    g.attribute(key, v.size() == 1 ? *v.begin() : fmt::format("{} values: see the runs", v.size()));
  }
  return g;
}

Provenance read_provenance(const hdf5::Reader& reader, const std::string& run) {
  Provenance provenance;
  const std::string group = ResultsFile::group_of(run) + "/provenance";
  if (!reader.has(group)) return provenance;
  for (const hdf5::Attribute& a : reader.group(group).attributes)
    if (std::holds_alternative<std::string>(a.value))
      provenance.emplace_back(a.name, std::get<std::string>(a.value));
  return provenance;
}

ExperimentInfo read_experiment(const hdf5::Reader& reader) {
  ExperimentInfo e;
  e.name = reader.text_attribute("", "title");
  if (!reader.has("experiment")) return e;
  e.name = reader.text_attribute("experiment", "name");
  e.baseline = reader.text_attribute("experiment", "baseline");
  e.metric = reader.text_attribute("experiment", "metric");
  if (const auto confidence = reader.attribute("experiment", "confidence"))
    if (const double* value = std::get_if<double>(&*confidence)) e.confidence = *value;
  e.description = reader.text("experiment/description");
  e.config_source = reader.text("experiment/config_source");
  if (reader.has("experiment/overrides")) e.overrides = reader.read<std::string>("experiment/overrides");
  return e;
}

}  // namespace

void write_run_file(const std::filesystem::path& path, const RunData& data) {
  hdf5::Group root = root_group(data.info.name);
  const RunSummary summary = summarise(data);
  root.groups.push_back(common_provenance({data.info.provenance}));
  root.groups.push_back(summary_group({&summary, 1}));
  hdf5::Group& runs = root.group("runs");
  hdf5::Group run = run_group(data);
  run.name = data.info.name;
  runs.groups.push_back(std::move(run));
  hdf5::write_file(path, root);
}

void write_results_file(const std::filesystem::path& path, const ExperimentInfo& experiment,
                        const std::vector<std::filesystem::path>& run_files) {
  hdf5::Group root = root_group(experiment.name);
  hdf5::Group runs;
  runs.name = "runs";
  std::vector<RunSummary> summaries;
  std::vector<Provenance> provenance;
  std::set<std::string> seen;
  for (const std::filesystem::path& file_path : run_files) {
    const ResultsFile file(file_path);
    for (const RunSummary& summary : file.runs()) {
      require(seen.insert(summary.run).second, "[results] run {} of {} comes twice", summary.run,
              file_path.string());
      summaries.push_back(summary);
      provenance.push_back(read_provenance(file.reader(), summary.run));
      runs.deferred.push_back({summary.run, [file_path, run = summary.run] {
                                 return hdf5::Reader(file_path).group(ResultsFile::group_of(run));
                               }});
    }
  }
  root.groups.push_back(experiment_group(experiment));
  root.groups.push_back(common_provenance(provenance));
  if (!summaries.empty()) {
    root.groups.push_back(summary_group(summaries));
    const bool has_baseline =
        std::ranges::find(summaries, experiment.baseline, &RunSummary::variant) != summaries.end();
    Comparison comparison = compare_runs(
        summaries, [](const RunSummary& s) { return s.eval_loss_final; },
        has_baseline ? experiment.baseline : "", experiment.confidence);
    comparison.metric = "eval/loss";
    root.groups.push_back(variants_group(comparison));
  }
  root.groups.push_back(std::move(runs));
  hdf5::write_file(path, root);
}

ResultsFile::ResultsFile(const std::filesystem::path& path) : reader_(hdf5::require_sealed(path)) {
  const std::string format = reader_.text_attribute("", "format");
  require_whole(format == kFormat, "[results] {} is no file of results: its format is '{}' instead of '{}'",
                path.string(), format, kFormat);
  const std::string version = reader_.text_attribute("", "format_version");
  require(version.starts_with("1."), "[results] {} has format version {}, this program reads 1.x",
          path.string(), version);
  experiment_ = read_experiment(reader_);
  runs_ = read_summaries(reader_);
}

const RunSummary& ResultsFile::run(const std::string& name) const {
  const auto it = std::ranges::find(runs_, name, &RunSummary::run);
  if (it != runs_.end()) return *it;
  std::string known;
  for (const RunSummary& r : runs_) known += (known.empty() ? "" : ", ") + r.run;
  fail("[results] {} has no run '{}'; its runs are {}", path().string(), name, known);
}

std::optional<Series> ResultsFile::series(const std::string& run, const std::string& metric) const {
  const std::size_t slash = metric.find('/');
  require(slash != std::string::npos, "[results] '{}' is no metric; write eval/loss, train/loss, ...",
          metric);
  const std::string group = group_of(run) + "/" + metric.substr(0, slash) + "/";
  std::string dataset = metric.substr(slash + 1);
  std::string domain;
  if (dataset.starts_with("loss/")) {
    domain = dataset.substr(5);
    dataset = "loss_by_domain";
  }
  if (!reader_.has(group + dataset) || !reader_.has(group + "step")) return std::nullopt;
  Series s;
  s.step = reader_.read<double>(group + "step");
  s.tokens = reader_.read<double>(group + "tokens");
  s.time = reader_.has(group + "time") ? reader_.read<double>(group + "time")
                                       : std::vector<double>(s.step.size(), kNotMeasured);
  s.value = reader_.read<double>(group + dataset);
  require(s.tokens.size() == s.step.size() && s.time.size() == s.step.size(),
          "[results] {} of {} has {} steps, {} tokens and {} times", group, path().string(), s.step.size(),
          s.tokens.size(), s.time.size());
  if (!domain.empty()) {
    const auto domains = reader_.read<std::string>(group + "domain");
    require(s.value.size() == s.step.size() * domains.size(),
            "[results] {} of {} is no table of {} steps and {} domains", group + dataset, path().string(),
            s.step.size(), domains.size());
    const auto it = std::ranges::find(domains, domain);
    if (it == domains.end()) return std::nullopt;
    std::vector<double> one;
    for (std::size_t i = 0; i < s.step.size(); ++i)
      one.push_back(s.value[i * domains.size() + static_cast<std::size_t>(it - domains.begin())]);
    s.value = std::move(one);
  }
  require(s.value.size() == s.step.size(), "[results] {} is no series over steps", metric);
  return s;
}

}  // namespace moelab
