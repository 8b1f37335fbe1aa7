// Where results are, by what people name.
#pragma once

#include <filesystem>

namespace moelab {

// The results file that `named` means: itself, or that of the execution or the run whose folder it is. Error
// where a folder has none, with the execution below it that may be meant.
std::filesystem::path results_path(const std::filesystem::path& named);

}  // namespace moelab
