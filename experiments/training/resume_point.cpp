#include "experiments/training/resume_point.hpp"

#include "core/damaged_file.hpp"
#include "experiments/config/difference.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/training/checkpoint_folder.hpp"

#include <algorithm>
#include <limits>

#include <fmt/ranges.h>

namespace moelab {

namespace {

// A name that no other file has.
std::filesystem::path aside_of(const std::filesystem::path& checkpoint) {
  const std::string name = checkpoint.string() + ".passed_over";
  std::filesystem::path free = name;
  for (int i = 2; std::filesystem::exists(free); ++i) free = fmt::format("{}{}", name, i);
  return free;
}

// The journal of a run as far as it is good.
class JournalOfRun {
 public:
  JournalOfRun(const std::filesystem::path& folder, const RunInfo& info) {
    data_.info = info;
    problem_ = read_run_journal(folder, data_).problem;
  }

  const std::string& problem() const { return problem_; }

  // DamagedFile where it lacks records that were in it when the checkpoint was saved. Checkpoints of earlier
  // versions do not say how many: for these, no line up to their step may be damaged.
  void require_records(const CheckpointReader& checkpoint) const {
    const std::int64_t step = checkpoint.training().step;
    const std::int64_t held = records_until(step);
    const hdf5::Group extra = checkpoint.extra();
    if (const hdf5::Attribute* wanted = extra.find_attribute(kJournalRecords)) {
      require_whole(held >= std::get<std::int64_t>(wanted->value),
                    "{} goes with {} records in metrics.jsonl, which has {} up to its step",
                    checkpoint.path().string(), std::get<std::int64_t>(wanted->value), held);
    } else {
      require_whole(problem_.empty() || held < data_records(),
                    "{} goes with records that metrics.jsonl has lost", checkpoint.path().string());
    }
  }

 private:
  std::int64_t data_records() const { return records_until(std::numeric_limits<std::int64_t>::max()); }
  std::int64_t records_until(std::int64_t step) const {
    const auto count = [step](const auto& records) {
      return std::ranges::count_if(records, [step](const auto& r) { return r.step <= step; });
    };
    return count(data_.train) + count(data_.eval) + count(data_.routing);
  }
  RunData data_;
  std::string problem_;
};

void require_same_config(const CheckpointReader& checkpoint, const Run& run) {
  const TrainingState& training = checkpoint.training();
  std::vector<std::string> differences;
  try {
    differences = differences_against_resume(training.config, run.resolved_yaml, training.step);
  } catch (const Error& e) {
    fail("{}: {}", checkpoint.path().string(), e.what());
  }
  if (differences.empty()) return;
  throw ConfigError(fmt::format("{}: cannot go on from step {}: the config has changed:\n  {}", run.name,
                                training.step, fmt::join(differences, "\n  ")));
}

}  // namespace

ResumePoint find_resume_point(const Run& run, const std::filesystem::path& folder, const RunInfo& info,
                              const std::function<void(const std::string&)>& note) {
  ResumePoint point;
  const CheckpointFolder checkpoints(folder / "checkpoints");
  const JournalOfRun journal(folder, info);
  if (!journal.problem().empty()) note(fmt::format("{}; it counts up to there", journal.problem()));
  for (const std::int64_t step : checkpoints.steps()) {
    const std::filesystem::path path = checkpoints.path_of(step);
    try {
      CheckpointReader reader(path);
      reader.verify();
      require_same_config(reader, run);
      journal.require_records(reader);
      point.checkpoint.emplace(std::move(reader));
      break;
    } catch (const DamagedFile& e) {
      note(fmt::format("passed over: {}", e.what()));
      point.passed_over.push_back(path);
    }
  }
  return point;
}

void set_aside(const std::vector<std::filesystem::path>& checkpoints,
               const std::function<void(const std::string&)>& note) {
  for (const std::filesystem::path& path : checkpoints) {
    const std::filesystem::path aside = aside_of(path);
    std::filesystem::rename(path, aside);
    note(fmt::format("{} is kept as {}", path.string(), aside.filename().string()));
  }
}

}  // namespace moelab
