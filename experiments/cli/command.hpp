// The commands of the program, one file each. main.cpp only dispatches.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace moelab::cli {

// Exit statuses. They are part of the interface: scripts depend on them.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;           // wrong configuration or command line
inline constexpr int kSomeRunsFailed = 3;  // some runs failed or diverged
inline constexpr int kFailIfHeld = 4;      // a condition of --fail-if held
inline constexpr int kInterrupted = 130;   // ended by Ctrl-C, after a checkpoint
inline constexpr int kReaderGone = 141;    // the reader of the output has seen enough, as `| head` does

// What the options that all commands share have set, and what a command answers.
struct Context {
  bool quiet = false;        // results and errors only
  std::string command_line;  // as it was typed
  int exit_code = kDone;
  std::string last_words;  // for stderr when all else is said, or could not be
};

// Each adds a subcommand whose callback does the work and sets context.exit_code. Errors are thrown.
void add_bench(CLI::App& app, Context& context);
void add_check(CLI::App& app, Context& context);
void add_compare(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_count(CLI::App& app, Context& context);
void add_export(CLI::App& app, Context& context);
void add_help(CLI::App& app, Context& context);
void add_kinds(CLI::App& app, Context& context);
void add_ls(CLI::App& app, Context& context);
void add_man(CLI::App& app, Context& context);
void add_merge(CLI::App& app, Context& context);
void add_new(CLI::App& app, Context& context);
void add_plot(CLI::App& app, Context& context);
void add_recover(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_packages(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_schema(CLI::App& app, Context& context);
void add_show(CLI::App& app, Context& context);
void add_version(CLI::App& app, Context& context);

}  // namespace moelab::cli
