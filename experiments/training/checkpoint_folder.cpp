#include "experiments/training/checkpoint_folder.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string>

#include <fmt/format.h>

namespace moelab {

namespace {

std::optional<std::int64_t> step_of(const std::string& file_name) {
  constexpr std::string_view prefix = "step_";
  constexpr std::string_view suffix = ".h5";
  if (!file_name.starts_with(prefix) || !file_name.ends_with(suffix)) return std::nullopt;
  const char* begin = file_name.data() + prefix.size();
  const char* end = file_name.data() + file_name.size() - suffix.size();
  std::int64_t step = 0;
  const auto [stopped, error] = std::from_chars(begin, end, step);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return step;
}

}  // namespace

std::filesystem::path CheckpointFolder::path_of(std::int64_t step) const {
  return folder_ / fmt::format("step_{}.h5", step);
}

std::vector<std::int64_t> CheckpointFolder::steps() const {
  std::vector<std::int64_t> found;
  if (!std::filesystem::exists(folder_)) return found;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (const auto step = step_of(entry.path().filename().string())) found.push_back(*step);
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

void CheckpointFolder::prune(Index keep, std::optional<std::int64_t> best) const {
  const std::vector<std::int64_t> found = steps();
  for (std::size_t i = static_cast<std::size_t>(keep); i < found.size(); ++i) {
    if (found[i] != best) std::filesystem::remove(path_of(found[i]));
  }
}

std::filesystem::path checkpoint_at(const std::filesystem::path& path) {
  require(std::filesystem::exists(path), "there is no file {}", path.string());
  if (!std::filesystem::is_directory(path)) return path;
  for (const std::filesystem::path& folder : {path, path / "checkpoints"}) {
    const CheckpointFolder checkpoints(folder);
    const std::vector<std::int64_t> steps = checkpoints.steps();
    if (!steps.empty()) return checkpoints.path_of(steps.front());
  }
  fail("the folder {} has no checkpoint (step_<n>.h5)", path.string());
}

std::optional<std::int64_t> best_evaluated_step(const std::vector<EvalRecord>& evaluations,
                                                const std::vector<std::int64_t>& steps) {
  const EvalRecord* best = nullptr;
  for (const EvalRecord& evaluation : evaluations) {
    const bool has_checkpoint = std::find(steps.begin(), steps.end(), evaluation.step) != steps.end();
    if (has_checkpoint && (best == nullptr || evaluation.loss < best->loss)) best = &evaluation;
  }
  if (best == nullptr) return std::nullopt;
  return best->step;
}

}  // namespace moelab
