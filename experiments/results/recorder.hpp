// What is known of one run: its series in memory, an append-only journal on the disk (metrics.jsonl), and
// complete snapshots (run.h5). The trainer records; everything that reads results reads the snapshots.
//
// A value that was not measured is NaN (integers: -1).
#pragma once

#include "experiments/results/journal.hpp"
#include "experiments/results/run_data.hpp"

#include <filesystem>
#include <string>

namespace moelab {

class Recorder {
 public:
  // A new run in `folder`, which exists. Writes run.json (who the run is, for recovery) and opens the
  // journal. Error if the folder already has a journal, or another process writes it.
  static Recorder create(std::filesystem::path folder, RunInfo info);
  // Goes on with a run that was at `step` when its checkpoint was saved. The journal is loaded up to that
  // step; what stands behind, or behind a line that is not a record, is dropped.
  static Recorder resume(std::filesystem::path folder, RunInfo info, std::int64_t step);

  // Steps must rise within one kind of record. Each call appends one line to the journal.
  void record_train(const TrainRecord& record);
  void record_eval(const EvalRecord& record);
  // As many layers, each with as many experts, as RunInfo says.
  void record_routing(const RoutingRecordRow& record);

  void set_evaluation_statistics(EvaluationStatistics statistics);
  void set_routing_samples(RoutingSamples samples);
  void set_resources(const Resources& resources);
  // With a reason for everything but `done`.
  void set_status(RunStatus status, std::string reason = {});

  // Lines of the journal.
  std::int64_t num_records() const;
  // What was recorded is on the disk when it returns: before a checkpoint that counts on it is.
  void sync() const { journal_.sync(); }

  // Writes run.h5 as a whole, after sync(). The old one stays until the new one is on the disk.
  void write_snapshot() const;

  const RunData& data() const { return data_; }
  const std::filesystem::path& folder() const { return folder_; }
  // JournalWriter::lock_problem()
  const std::string& lock_problem() const { return journal_.lock_problem(); }

 private:
  Recorder(std::filesystem::path folder, RunData data, JournalWriter journal);
  std::filesystem::path folder_;
  RunData data_;
  JournalWriter journal_;
};

// Adds the records in the journal of a run's folder, if there is one, up to the first line that is not a
// record.
JournalEnd read_run_journal(const std::filesystem::path& folder, RunData& data);

// Reads run.json, the journal and, where it is not damaged, what only run.h5 holds (evaluation statistics,
// samples), and returns the run as far as it was recorded. Its status is `interrupted` unless run.h5 says how
// it ended. Error also where run.h5 cannot be read now: it may be whole.
RunData recover_run(const std::filesystem::path& folder);

}  // namespace moelab
