#include "core/build_info.hpp"
#include "experiments/cli/command.hpp"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

void add_version(CLI::App& app, Context& /*context*/) {
  CLI::App* command = app.add_subcommand("version", "The version of this program, and what it is built on");
  auto verbose = std::make_shared<bool>(false);
  command->add_flag("-v,--verbose", *verbose,
                    "Compiler, instruction sets, product backends, libraries, threads");
  command->callback([verbose] {
    const BuildInfo info = build_info();
    fmt::print("{}", *verbose ? to_text(info) : fmt::format("moelab {}\n", info.version));
  });
}

}  // namespace moelab::cli
