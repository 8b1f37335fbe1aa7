#include "experiments/results/recover.hpp"

#include "core/error.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/results/describe.hpp"

#include <filesystem>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

void add_recover(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "recover", "Writes run.h5 anew from the journal, and results.h5 from the runs, after a run was killed");
  auto folder = std::make_shared<std::string>();
  command->add_option("DIR", *folder, "Folder of a run, or of an experiment with its runs")->required();
  command->callback([folder, &context] {
    const std::vector<RecoveredRun> runs = recover(*folder);
    for (const RecoveredRun& r : runs) {
      if (!r.error.empty()) {
        tell(fmt::format("moelab: error: {}: {}\n", r.folder.string(), r.error));
        context.exit_code = kSomeRunsFailed;
      } else if (!context.quiet) {
        fmt::print("{}: {}, up to step {}{}\n", r.folder.string(), r.status, r.last_step,
                   r.kept ? "; run.h5 was kept: it holds more than the journal" : "");
      }
    }
    const std::filesystem::path results = std::filesystem::path(*folder) / "results.h5";
    if (!context.quiet && std::filesystem::exists(results)) tell(baseline_note(ResultsFile(results)));
  });
}

}  // namespace moelab::cli
