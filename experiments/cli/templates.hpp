// Experiment files to start from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace moelab::cli {

struct Template {
  std::string_view name;
  std::string_view help;
  std::string_view text;
};

const std::vector<Template>& templates();

}  // namespace moelab::cli
