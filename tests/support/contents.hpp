// A folder as it is, to see that nothing of it is changed.
#pragma once

#include "core/file.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace moelab {

// Everything below a folder, by its path there: the bytes of files, where links lead, "" for folders.
inline std::map<std::string, std::string> contents_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::string& content = contents[entry.path().lexically_relative(folder).string()];
    if (entry.is_symlink()) {
      content = std::filesystem::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      content = read_file(entry.path());
    }
  }
  return contents;
}

}  // namespace moelab
