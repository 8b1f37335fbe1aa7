#include "core/build_info.hpp"

#include "core/gemm.hpp"
#include "core/parallel.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include <fmt/core.h>

using namespace moelab;

TEST_CASE("the build tells what it is made of", "[build_info]") {
  const BuildInfo info = build_info();
  CHECK(info.version.find('.') != std::string::npos);
  CHECK(info.compiler_flags.find("-ffp-contract=fast") != std::string::npos);
  CHECK(info.threads == parallel::threads());
  CHECK(info.gemm_float32 == gemm::backend(gemm::Precision::float32));
  for (const auto& [name, version] : info.libraries) {
    CAPTURE(name, version);
    CHECK(!version.empty());
    CHECK(std::isdigit(static_cast<unsigned char>(version[0])) != 0);
  }
  const auto version_of = [&](const std::string& wanted) {
    const auto found = std::find_if(info.libraries.begin(), info.libraries.end(),
                                    [&](const auto& library) { return library.first == wanted; });
    return found == info.libraries.end() ? std::string() : found->second;
  };
  CHECK(version_of("Eigen") ==
        fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION));
  const std::string fmt_version =
      fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
  CHECK(version_of("fmt") == fmt_version);

  const std::string text = to_text(info);
  CHECK(text.find(info.gemm_bfloat16) != std::string::npos);
  CHECK(text.find("TBB") != std::string::npos);
}
