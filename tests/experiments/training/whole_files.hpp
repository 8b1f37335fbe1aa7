// What every fault leaves: files that are whole.
#pragma once

#include <filesystem>

namespace moelab {

// Checks every file below the folder whose name says that it is complete, as the program's readers do:
// results and checkpoints with their checksums, JSON, YAML and the report. Returns how many there were.
int check_whole_files(const std::filesystem::path& root);

}  // namespace moelab
