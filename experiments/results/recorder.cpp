#include "experiments/results/recorder.hpp"

#include "core/damaged_file.hpp"
#include "core/file.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/run_group.hpp"
#include "experiments/results/run_info_json.hpp"

#include <limits>

namespace moelab {

namespace {

constexpr const char* kJournal = "metrics.jsonl";
constexpr const char* kInfo = "run.json";
constexpr const char* kSnapshot = "run.h5";

template <class Record>
void require_later(const std::vector<Record>& records, const Record& record, const char* kind) {
  if (records.empty()) return;
  require(records.back().step < record.step, "[recorder] a {} record of step {} comes after one of step {}",
          kind, record.step, records.back().step);
}

RunData data_of(RunInfo info) {
  RunData data;
  data.info = std::move(info);
  return data;
}

}  // namespace

Recorder::Recorder(std::filesystem::path folder, RunData data, JournalWriter journal)
    : folder_(std::move(folder)), data_(std::move(data)), journal_(std::move(journal)) {
  write_run_info(folder_ / kInfo, data_.info);
}

Recorder Recorder::create(std::filesystem::path folder, RunInfo info) {
  const std::filesystem::path journal = folder / kJournal;
  require(!std::filesystem::exists(journal), "[recorder] {} is there already: the run was started before",
          journal.string());
  JournalWriter writer(journal);
  return {std::move(folder), data_of(std::move(info)), std::move(writer)};
}

Recorder Recorder::resume(std::filesystem::path folder, RunInfo info, std::int64_t step) {
  JournalWriter writer(folder / kJournal);
  RunData data = data_of(std::move(info));
  writer.cut(read_journal_until(folder / kJournal, step, data).bytes);
  return {std::move(folder), std::move(data), std::move(writer)};
}

void Recorder::record_train(const TrainRecord& record) {
  require_later(data_.train, record, "training");
  journal_.append(record);
  data_.train.push_back(record);
}

void Recorder::record_eval(const EvalRecord& record) {
  require_later(data_.eval, record, "evaluation");
  require(record.loss_by_domain.empty() || record.loss_by_domain.size() == data_.info.domains.size(),
          "[recorder] losses of {} domains, there are {}", record.loss_by_domain.size(),
          data_.info.domains.size());
  journal_.append(record, data_.info.domains);
  data_.eval.push_back(record);
}

void Recorder::record_routing(const RoutingRecordRow& record) {
  require_later(data_.routing, record, "routing");
  const std::vector<MoeLayer>& layers = data_.info.moe_layers;
  require(record.layers.size() == layers.size(), "[recorder] routing of {} layers, there are {}",
          record.layers.size(), layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto check = [&](const char* name, std::size_t size, bool may_be_empty) {
      require(size == static_cast<std::size_t>(layers[l].num_experts) || (may_be_empty && size == 0),
              "[recorder] {} of layer {} has {} entries, the layer {} experts", name, layers[l].layer, size,
              layers[l].num_experts);
    };
    check("expert_tokens", record.layers[l].expert_tokens.size(), false);
    check("expert_dropped", record.layers[l].expert_dropped.size(), true);
    check("router_probability_mean", record.layers[l].router_probability_mean.size(), true);
    check("expert_bias", record.layers[l].expert_bias.size(), true);
  }
  journal_.append(record, layers);
  data_.routing.push_back(record);
}

void Recorder::set_evaluation_statistics(EvaluationStatistics statistics) {
  data_.statistics = std::move(statistics);
}

void Recorder::set_routing_samples(RoutingSamples samples) { data_.samples = std::move(samples); }

void Recorder::set_resources(const Resources& resources) { data_.resources = resources; }

void Recorder::set_status(RunStatus status, std::string reason) {
  data_.status = status;
  data_.status_reason = std::move(reason);
}

std::int64_t Recorder::num_records() const {
  return static_cast<std::int64_t>(data_.train.size() + data_.eval.size() + data_.routing.size());
}

void Recorder::write_snapshot() const {
  sync();
  write_run_file(folder_ / kSnapshot, data_);
}

JournalEnd read_run_journal(const std::filesystem::path& folder, RunData& data) {
  if (!std::filesystem::exists(folder / kJournal)) return {};
  return read_journal_until(folder / kJournal, std::numeric_limits<std::int64_t>::max(), data);
}

RunData recover_run(const std::filesystem::path& folder) {
  RunData data = data_of(read_run_info(folder / kInfo));
  read_journal(folder / kJournal, data);
  data.status = RunStatus::interrupted;
  data.status_reason = "rebuilt from the journal";
  const std::filesystem::path snapshot = folder / kSnapshot;
  if (!file_exists(snapshot)) return data;
  try {
    const ResultsFile file(snapshot);
    const RunSummary& summary = file.run(data.info.name);
    const std::string group = ResultsFile::group_of(data.info.name);
    data.statistics = read_statistics(file.reader(), group, data.info);
    data.samples = read_routing_samples(file.reader(), group, data.info);
    data.resources = {summary.wall_seconds, summary.peak_rss_bytes, summary.train_flops};
    if (summary.status == RunStatus::running) return data;
    data.status = summary.status;
    data.status_reason = file.reader().text_attribute(group, "status_reason");
  } catch (const DamagedFile& error) {
    data.status_reason = std::string("rebuilt from the journal; run.h5 was not readable: ") + error.what();
  }
  return data;
}

}  // namespace moelab
