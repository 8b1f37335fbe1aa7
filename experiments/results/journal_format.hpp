// What the writer and the reader of a journal share.
#pragma once

#include "experiments/results/run_data.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace moelab {

// The scalars of a record: key and member, used for writing and reading.
inline constexpr std::array<std::pair<std::string_view, double TrainRecord::*>, 7> kTrainScalars = {{
    {"time", &TrainRecord::time},
    {"train/loss", &TrainRecord::loss},
    {"train/lr", &TrainRecord::lr},
    {"train/grad_norm", &TrainRecord::grad_norm},
    {"train/step_seconds", &TrainRecord::step_seconds},
    {"train/tokens_per_second", &TrainRecord::tokens_per_second},
    {"train/active_compute_ratio", &TrainRecord::active_compute_ratio},
}};
inline constexpr std::array<std::pair<std::string_view, double EvalRecord::*>, 4> kEvalScalars = {{
    {"time", &EvalRecord::time},
    {"eval/loss", &EvalRecord::loss},
    {"eval/bits_per_byte", &EvalRecord::bits_per_byte},
    {"eval/accuracy", &EvalRecord::accuracy},
}};
inline constexpr std::string_view kAuxiliary = "train/aux_";
inline constexpr std::string_view kDomain = "eval/loss/";

inline std::string layer_key(const MoeLayer& layer, std::string_view statistic) {
  return fmt::format("moe/layer_{}/{}", layer.layer, statistic);
}

// A record as it stands in the file. `object` is a JSON object without its closing brace; a last entry gets
// the CRC-32 of all that stands before it, since a line with another digit or key may still be a record.
std::string sealed_line(const std::string& object);

// Error where the sum at the end of a line, given without its line break, is missing or another.
void check_seal(std::string_view line);

// Calls use(number, text) for each complete line, until it returns false. Returns where the last one that it
// took ends.
template <class Use>
std::size_t for_lines(const std::string& text, const Use& use) {
  std::size_t begin = 0;
  std::size_t number = 1;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    if (!use(number++, std::string_view(text).substr(begin, end - begin))) return begin;
    begin = end + 1;
  }
  return begin;
}

}  // namespace moelab
