// oracle_check FILE [CASE...]: runs every case of an oracle file (or those named) through the library in
// float64, prints a line a case, and fails when one differs.
#include "tests/oracle/kinds.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

using namespace moelab;

namespace {

bool run_one(const hdf5::Reader& file, const std::string& name) {
  std::string kind = "?";
  try {
    const oracle::Case c = oracle::read_case(file, name);
    kind = c.kind;
    oracle::Comparison comparison(c);
    oracle::run_case(c, comparison);
    const oracle::Comparison::Result result = comparison.result();
    fmt::print("{}  {:<16} {:<40} worst relative error {:.1e} ({})\n", result.passed ? "pass" : "FAIL", kind,
               name, result.worst, result.worst_name);
    for (const std::string& failure : result.failures) fmt::print("      {}\n", failure);
    return result.passed;
  } catch (const std::exception& e) {
    fmt::print("FAIL  {:<16} {:<40} {}\n", kind, name, e.what());
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: oracle_check FILE [CASE...]\n");
    return 2;
  }
  try {
    const hdf5::Reader file(argv[1]);
    std::vector<std::string> names(argv + 2, argv + argc);
    if (names.empty()) names = oracle::case_names(file);
    std::ptrdiff_t passed = 0;
    for (const std::string& name : names) passed += run_one(file, name) ? 1 : 0;
    fmt::print("{} of {} cases pass\n", passed, names.size());
    return passed == static_cast<std::ptrdiff_t>(names.size()) && !names.empty() ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
