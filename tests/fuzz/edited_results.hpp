// Results files that are whole, with a right checksum, and hold what no writer of this project would write:
// values of the wrong type, size or range, and objects that are missing. Readers must not trust any of it.
#pragma once

#include <filesystem>
#include <string_view>

namespace moelab {

// Writes the example results with a change for every four bytes of the script: what, where, and how. Error
// where the changes cannot be written as a file.
void write_edited_results(const std::filesystem::path& path, std::string_view script);

}  // namespace moelab
