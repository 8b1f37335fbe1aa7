#include "experiments/results/provenance.hpp"

#include "core/build_info.hpp"

#include <chrono>
#include <ctime>

#include "git_commit.hpp"
#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <unistd.h>

namespace moelab {

std::string utc_now() {
  const std::time_t time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

namespace {

// An attribute of a results file holds less than 64 KB; overrides are kept whole beside it.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 16'384;
  return text.size() <= kMost ? text : text.substr(0, kMost) + " ... (cut)";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> collect_provenance(const std::string& command_line,
                                                                    const std::string& precision) {
  const BuildInfo build = build_info();
  utsname system{};
  uname(&system);
  nlohmann::ordered_json libraries = nlohmann::ordered_json::object();
  for (const auto& [name, version] : build.libraries) libraries[name] = version;
  return {{"program", "moelab"},
          {"version", build.version},
          {"git_commit", kGitCommit},
          {"git_dirty", kGitDirty},
          {"command_line", shortened(command_line)},
          {"hostname", system.nodename},
          {"os", std::string(system.sysname) + " " + system.release + " " + system.machine},
          {"cpu_model", build.cpu_model},
          {"isa", "compiled for " + build.isa_compiled + "; machine has " + build.isa_machine},
          {"compiler", build.compiler},
          {"compiler_flags", build.compiler_flags},
          {"build_type", build.build_type},
          {"libraries", libraries.dump()},
          {"gemm_backend", precision == "bfloat16" ? build.gemm_bfloat16 : build.gemm_float32},
          {"threads", std::to_string(build.threads)},
          {"precision", precision},
          {"start", utc_now()}};
}

}  // namespace moelab
