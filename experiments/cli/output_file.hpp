// Where a command writes its one file.
#pragma once

#include <filesystem>
#include <string>

namespace moelab::cli {

// What an option names: a file, or a folder, which gets one of that `name`. ConfigError for a folder that is
// not there.
std::filesystem::path file_to_write(const std::filesystem::path& given, const std::string& name);

}  // namespace moelab::cli
