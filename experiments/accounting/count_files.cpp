#include "experiments/accounting/count_files.hpp"

#include "core/error.hpp"
#include "experiments/accounting/published.hpp"
#include "experiments/accounting/variants.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/ranges.h>

namespace moelab {

namespace {

constexpr Index kPublishedContext = 4096;

std::string read_text(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  if (!in || !(text << in.rdbuf())) throw ConfigError(fmt::format("{}: cannot be read, or is empty", file));
  return text.str();
}

// `config.json` says little: the folder that it lies in names the model.
std::string short_name(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  const std::string folder = std::filesystem::absolute(file).parent_path().filename().string();
  return stem == "config" && !folder.empty() ? folder : stem;
}

bool is_yaml(const std::filesystem::path& file) {
  return file.extension() == ".yaml" || file.extension() == ".yml";
}

bool is_override(const std::string& argument) {
  return argument.find('=') != std::string::npos && !std::filesystem::exists(argument);
}

}  // namespace

std::string count_files(const CountOptions& options) {
  LoadOptions load;
  load.solve_twin = solve_twin;
  load.look_for_data = false;
  std::vector<std::string> files;
  for (const std::string& argument : options.arguments) {
    (is_override(argument) ? load.overrides : files).push_back(argument);
  }
  if (files.empty()) throw ConfigError("there is no file to count");
  std::vector<CountedModel> models;
  bool any_experiment = false;
  for (const std::string& file : files) {
    const std::string text = read_text(file);
    const bool is_published = !is_yaml(file) && is_published_config(text);
    any_experiment |= !is_published;
    if (is_published) {
      const Index context = options.context.value_or(kPublishedContext);
      models.push_back({short_name(file), account_published(text, file, context)});
      continue;
    }
    for (CountedModel& variant : count_variants(load_experiment(file, load), options.context)) {
      if (files.size() > 1) variant.name = short_name(file) + "/" + variant.name;
      models.push_back(std::move(variant));
    }
  }
  if (!any_experiment && !load.overrides.empty()) {
    throw ConfigError(fmt::format(
        "{} overrides nothing: overrides go to experiments (YAML), and {} {} published; change a copy of the "
        "file instead",
        fmt::join(load.overrides, ", "), fmt::join(files, ", "), files.size() == 1 ? "is" : "are"));
  }
  return options.json ? accounting_json(models) : accounting_table(models);
}

}  // namespace moelab
