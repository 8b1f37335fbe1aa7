// What made a result, to be kept with it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace moelab {

// Beside them, of a run: the checksum of its data, where they are not made from the config alone.
inline constexpr const char* kDataChecksum = "data_crc32";

// Names and values as text: program, version, git_commit, git_dirty, command_line, hostname, os, cpu_model,
// isa, compiler, compiler_flags, build_type, libraries (JSON), gemm_backend, threads, precision, start.
// `precision` is that of the matrix products; the time of the call is the start.
std::vector<std::pair<std::string, std::string>> collect_provenance(const std::string& command_line,
                                                                    const std::string& precision);

// UTC, ISO 8601.
std::string utc_now();

}  // namespace moelab
