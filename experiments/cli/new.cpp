#include "core/error.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/templates.hpp"

#include <filesystem>
#include <fstream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

namespace {

void write(const std::string& name, const std::string& file, const Context& context) {
  for (const Template& candidate : templates()) {
    if (candidate.name != name) continue;
    if (file.empty()) {
      fmt::print("{}", candidate.text);
      return;
    }
    if (std::filesystem::exists(file)) throw ConfigError(fmt::format("{}: exists already", file));
    std::ofstream out(file, std::ios::binary);
    out << candidate.text << std::flush;
    require(out.good(), "{}: cannot be written", file);
    if (!context.quiet) fmt::print("{} is written; `moelab check {}` lists its runs\n", file, file);
    return;
  }
}

}  // namespace

void add_new(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("new", "Write a commented experiment file to start from");
  auto name = std::make_shared<std::string>("minimal");
  auto file = std::make_shared<std::string>();
  std::vector<std::string> names;
  std::string footer = "Templates:";
  for (const Template& known : templates()) {
    names.emplace_back(known.name);
    footer += fmt::format("\n  {:14}{}", known.name, known.help);
  }
  command->add_option("template", *name, "Which one")->check(CLI::IsMember(names))->capture_default_str();
  command->add_option("-o,--output", *file,
                      "Where to write it; an existing file is kept (default: standard output)");
  command->footer(footer);
  command->callback([name, file, &context] { write(*name, *file, context); });
}

}  // namespace moelab::cli
