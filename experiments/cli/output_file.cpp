#include "experiments/cli/output_file.hpp"

#include "core/error.hpp"

namespace moelab::cli {

std::filesystem::path file_to_write(const std::filesystem::path& given, const std::string& name) {
  std::error_code ignored;  // what cannot be looked at is told of where it is written
  if (std::filesystem::is_directory(given, ignored)) return given / name;
  if (!given.has_filename()) {
    throw ConfigError(
        fmt::format("there is no folder {}; make it, or give the name of a file", given.string()));
  }
  return given;
}

}  // namespace moelab::cli
