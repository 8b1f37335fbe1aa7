#include "experiments/training/resume_point.hpp"

#include "core/error.hpp"
#include "experiments/config/difference.hpp"
#include "experiments/training/checkpoint_folder.hpp"

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

}  // namespace

ResumePoint find_resume_point(const Run& run, const std::filesystem::path& folder,
                              const std::function<void(const std::string&)>& note) {
  ResumePoint point;
  const CheckpointFolder checkpoints(folder / "checkpoints");
  for (const std::int64_t step : checkpoints.steps()) {
    const std::filesystem::path path = checkpoints.path_of(step);
    try {
      CheckpointReader reader(path);
      reader.verify();
      point.checkpoint.emplace(std::move(reader));
      break;
    } catch (const Error& e) {
      note(fmt::format("passed over: {}", e.what()));
      point.passed_over.push_back(path);
    }
  }
  if (!point.checkpoint) return point;
  const TrainingState& training = point.checkpoint->training();
  const auto differences = differences_against_resume(training.config, run.resolved_yaml, training.step);
  if (differences.empty()) return point;
  throw ConfigError(fmt::format("{}: cannot go on from step {}: the config has changed:\n  {}", run.name,
                                training.step, fmt::join(differences, "\n  ")));
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
