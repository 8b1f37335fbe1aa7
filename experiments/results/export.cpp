#include "experiments/results/export.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json_text.hpp"
#include "experiments/compare/text_table.hpp"
#include "experiments/results/tensorboard.hpp"

#include <chrono>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

namespace moelab {

namespace {

using nlohmann::ordered_json;

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require(!error, "[export] cannot make the folder {}: {}", folder.string(), error.message());
}

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

// The series of a group that run over its steps alone.
void add_scalars(const ResultsFile& file, const std::string& run, const std::string& group,
                 std::vector<NamedSeries>& to) {
  const std::string path = ResultsFile::group_of(run) + "/" + group;
  if (!file.reader().has(path)) return;
  for (const std::string& name : file.reader().datasets(path)) {
    if (name == "step" || name == "tokens" ||
        file.reader().dataset(path + "/" + name).dimensions != std::vector<std::string>{"step"})
      continue;
    if (auto found = file.series(run, group + "/" + name))
      to.push_back({group + "/" + name, std::move(*found)});
  }
}

void add_domains(const ResultsFile& file, const std::string& run, std::vector<NamedSeries>& to) {
  const std::string path = ResultsFile::group_of(run) + "/eval/domain";
  if (!file.reader().has(path)) return;
  for (const std::string& domain : file.reader().read<std::string>(path))
    if (auto series = file.series(run, "eval/loss/" + domain))
      to.push_back({"eval/loss/" + domain, std::move(*series)});
}

void add_layers(const ResultsFile& file, const std::string& run, std::vector<NamedSeries>& to) {
  const hdf5::Reader& reader = file.reader();
  const std::string path = ResultsFile::group_of(run) + "/routing/";
  if (!reader.has(path + "layer")) return;
  const auto layers = reader.read<std::int64_t>(path + "layer");
  const auto step = reader.read<double>(path + "step"), tokens = reader.read<double>(path + "tokens");
  for (const RoutingScalar& s : routing_scalars()) {
    if (!reader.has(path + s.name)) continue;
    const auto values = reader.read<double>(path + s.name);  // (step, layer)
    require(values.size() == step.size() * layers.size() && tokens.size() == step.size(),
            "[export] {} of {} is no table of {} steps and {} layers", path + s.name, file.path().string(),
            step.size(), layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      Series series{step, tokens, std::vector<double>(step.size(), kNotMeasured), {}};
      for (std::size_t i = 0; i < step.size(); ++i) series.value.push_back(values[i * layers.size() + l]);
      to.push_back({fmt::format("moe/layer_{}/{}", layers[l], s.name), std::move(series)});
    }
  }
}

}  // namespace

std::vector<NamedSeries> all_series(const ResultsFile& file, const std::string& run) {
  std::vector<NamedSeries> series;
  add_scalars(file, run, "train", series);
  add_scalars(file, run, "eval", series);
  add_domains(file, run, series);
  add_layers(file, run, series);
  return series;
}

void export_csv(const ResultsFile& file, const std::filesystem::path& folder) {
  make_folder(folder);
  TextTable summary;
  summary.header = {"run", "variant", "seed", "sweep_point", "status"};
  for (const SummaryField& f : summary_fields()) summary.header.emplace_back(f.name);
  for (const RunSummary& r : file.runs()) {
    std::vector<std::string>& row = summary.rows.emplace_back(std::vector<std::string>{
        r.run, r.variant, std::to_string(r.seed), r.sweep_point, to_string(r.status)});
    for (const SummaryField& f : summary_fields()) row.push_back(exact(r.*f.member));
    TextTable table;
    table.header = {"step", "tokens", "name", "value"};
    for (const auto& [name, s] : all_series(file, r.run))
      for (std::size_t i = 0; i < s.step.size(); ++i)
        table.rows.push_back({exact(s.step[i]), exact(s.tokens[i]), name, exact(s.value[i])});
    replace_file(folder / (r.run + ".csv"), to_csv(table));
  }
  replace_file(folder / "summary.csv", to_csv(summary));
}

void export_jsonl(const ResultsFile& file, const std::filesystem::path& folder) {
  make_folder(folder);
  std::string summary;
  for (const RunSummary& r : file.runs()) {
    ordered_json line = {{"run", r.run},
                         {"variant", r.variant},
                         {"seed", r.seed},
                         {"sweep_point", r.sweep_point},
                         {"status", to_string(r.status)}};
    for (const SummaryField& f : summary_fields()) line[f.name] = number(r.*f.member);
    summary += json_text(line) + "\n";
    std::map<std::int64_t, ordered_json> steps;
    for (const auto& [name, s] : all_series(file, r.run)) {
      for (std::size_t i = 0; i < s.step.size(); ++i) {
        ordered_json& entry = steps[static_cast<std::int64_t>(s.step[i])];
        if (entry.empty())
          entry = {{"step", static_cast<std::int64_t>(s.step[i])},
                   {"tokens", static_cast<std::int64_t>(s.tokens[i])}};
        entry[name] = number(s.value[i]);
      }
    }
    std::string lines;
    for (const auto& [step, entry] : steps) lines += json_text(entry) + "\n";
    replace_file(folder / (r.run + ".jsonl"), lines);
  }
  replace_file(folder / "summary.jsonl", summary);
}

void export_tensorboard(const ResultsFile& file, const std::filesystem::path& folder) {
  const auto written = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(file.path()));
  const double start = std::chrono::duration<double>(written.time_since_epoch()).count();
  for (const RunSummary& r : file.runs()) {
    make_folder(folder / r.run);
    std::string events = tensorboard::file_version_record(start);
    for (const auto& [name, s] : all_series(file, r.run)) {
      for (std::size_t i = 0; i < s.step.size(); ++i) {
        if (!std::isfinite(s.value[i])) continue;
        const double wall_time = start + (std::isnan(s.time[i]) ? 0 : s.time[i]);
        events += tensorboard::scalar_record(wall_time, static_cast<std::int64_t>(s.step[i]), name,
                                             static_cast<float>(s.value[i]));
      }
    }
    // Always the same name: TensorBoard shows the points of all event files of a folder.
    replace_file(folder / r.run / "events.out.tfevents.0.moelab", events);
  }
}

}  // namespace moelab
