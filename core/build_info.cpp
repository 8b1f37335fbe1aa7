#include "core/build_info.hpp"

#include "core/gemm.hpp"
#include "core/parallel.hpp"

#include <fstream>
#include <sstream>

#include <fmt/ranges.h>

namespace moelab {

namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang++ {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string joined(const std::vector<const char*>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::string isa_compiled() {
  std::vector<const char*> names;
#ifdef __SSE4_2__
  names.push_back("SSE4.2");
#elif defined(__SSE2__)
  names.push_back("SSE2");
#endif
#ifdef __AVX__
  names.push_back("AVX");
#endif
#ifdef __AVX2__
  names.push_back("AVX2");
#endif
#ifdef __FMA__
  names.push_back("FMA");
#endif
#ifdef __AVX512F__
  names.push_back("AVX512F");
#endif
#ifdef __AVX512BF16__
  names.push_back("AVX512_BF16");
#endif
#ifdef __AMX_BF16__
  names.push_back("AMX_BF16");
#endif
  return names.empty() ? "generic" : joined(names);
}

// The value of the first line "key : value" of /proc/cpuinfo; empty where there is none.
std::string cpu_property(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.rfind(key, 0) != 0 || colon == std::string::npos) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

std::string isa_machine() {
  const std::string flags = " " + cpu_property("flags") + " ";
  std::vector<const char*> names;
  const std::pair<const char*, const char*> known[] = {
      {"sse4_2", "SSE4.2"},    {"avx", "AVX"},         {"avx2", "AVX2"},
      {"fma", "FMA"},          {"avx512f", "AVX512F"}, {"avx512_bf16", "AVX512_BF16"},
      {"amx_bf16", "AMX_BF16"}};
  for (const auto& [flag, name] : known) {
    if (flags.find(fmt::format(" {} ", flag)) != std::string::npos) names.push_back(name);
  }
  return names.empty() ? "unknown" : joined(names);
}

// MOELAB_LIBRARIES is "name version;name version".
std::vector<std::pair<std::string, std::string>> library_versions() {
  std::vector<std::pair<std::string, std::string>> libraries;
  std::istringstream list(MOELAB_LIBRARIES);
  for (std::string entry; std::getline(list, entry, ';');) {
    const std::size_t space = entry.find(' ');
    libraries.emplace_back(entry.substr(0, space), entry.substr(space + 1));
  }
  return libraries;
}

}  // namespace

BuildInfo build_info() {
  BuildInfo info;
  info.version = MOELAB_VERSION;
  info.compiler = compiler();
  info.compiler_flags = MOELAB_COMPILER_FLAGS;
  info.build_type = MOELAB_BUILD_TYPE;
  info.isa_compiled = isa_compiled();
  info.isa_machine = isa_machine();
  info.cpu_model = cpu_property("model name");
  info.gemm_float32 = gemm::backend(gemm::Precision::float32);
  info.gemm_bfloat16 = gemm::backend(gemm::Precision::bfloat16);
  if (!gemm::bfloat16_is_native()) info.gemm_bfloat16 += " (bfloat16 is not native: computed in float32)";
  info.threads = parallel::threads();
  info.libraries = library_versions();
  return info;
}

std::string to_text(const BuildInfo& info) {
  std::string text;
  const auto line = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{:<16}{}\n", fmt::format("{}:", name), value);
  };
  line("version", info.version);
  line("compiler", info.compiler);
  line("flags", info.compiler_flags);
  line("build type", info.build_type);
  line("isa compiled", info.isa_compiled);
  line("isa machine", info.isa_machine);
  line("cpu", info.cpu_model);
  line("float32", info.gemm_float32);
  line("bfloat16", info.gemm_bfloat16);
  line("threads", std::to_string(info.threads));
  for (const auto& [name, version] : info.libraries) line(name, version);
  return text;
}

}  // namespace moelab
