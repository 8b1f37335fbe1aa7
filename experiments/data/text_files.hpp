// Files of text by path, folder or glob.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace moelab {

// The files that a path stands for, each once, links resolved, sorted by name in byte order. A folder stands
// for every file below it. In a glob, `*` and `?` match within a name, `[a-z]` one character, and the name
// `**` any number of folders, none included. Hidden files and folders are left out unless named. Nothing
// found: an empty list.
std::vector<std::string> find_files(const std::string& path);

// The bytes of a file; one whose name ends in .gz is unpacked. Error if it cannot be read.
std::string read_text_file(const std::string& path);

}  // namespace moelab
