// What this program is made of and runs on, for `moelab version --verbose` and the provenance of results.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace moelab {

struct BuildInfo {
  std::string version;         // of this program
  std::string compiler;        // "g++ 12.2.0"
  std::string compiler_flags;  // as given to the compiler
  std::string build_type;      // Release, Debug, ...
  std::string isa_compiled;    // what the compiler was allowed to use, e.g. "AVX512F AVX512_BF16 AMX"
  std::string isa_machine;     // what this machine has
  std::string cpu_model;
  std::string gemm_float32;                                    // gemm::backend()
  std::string gemm_bfloat16;                                   // gemm::backend()
  int threads = 0;                                             // that parallel work may use
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version
};
BuildInfo build_info();

// One "name: value" line each.
std::string to_text(const BuildInfo& info);

}  // namespace moelab
