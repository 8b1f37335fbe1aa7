#include "experiments/cli/plan.hpp"

#include "core/gemm.hpp"
#include "core/parallel.hpp"
#include "core/visible.hpp"
#include "experiments/accounting/variants.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/compare/text_table.hpp"
#include "experiments/training/memory_needed.hpp"
#include "experiments/training/progress.hpp"
#include "experiments/training/resources.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include <fmt/format.h>

namespace moelab::cli {

namespace {

// Training reaches about this share of the rate of a plain product: the rest is norms, softmax, gathering and
// small matrices.
constexpr double kShareOfProductRate = 0.35;

// FLOPs a second of y = x w^T with x (512, 512) and w (512, 512), on all threads.
double product_rate() {
  using Clock = std::chrono::steady_clock;
  constexpr Index kSize = 512;
  const Matrix x = Matrix::Constant(kSize, kSize, Scalar{0.5});
  const Matrix w = Matrix::Constant(kSize, kSize, Scalar{0.25});
  Matrix y(kSize, kSize);
  gemm::forward(x, w, y, gemm::Precision::float32);  // the first one sets up
  const auto start = Clock::now();
  double flops = 0;
  double seconds = 0;
  while (seconds < 0.1) {
    gemm::forward(x, w, y, gemm::Precision::float32);
    flops += 2.0 * kSize * kSize * kSize;
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return flops / seconds;
}

std::string points_of(const Experiment& experiment) {
  std::string out;
  for (std::size_t i = 0; i < experiment.points.size(); ++i) {
    const bool is_run = std::any_of(experiment.runs.begin(), experiment.runs.end(),
                                    [&](const Run& run) { return run.point == static_cast<Index>(i); });
    if (!is_run) continue;
    out += fmt::format("p{}:", i);
    for (const auto& [key, value] : experiment.points[i].settings)
      out += visible_line(fmt::format("  {}={}", key, value));
    out += '\n';
  }
  return out.empty() ? "" : "\nsweep points\n" + out;
}

}  // namespace

std::string memory_of_jobs(const Experiment& experiment, Index jobs) {
  std::vector<double> needed;
  for (const Run& run : experiment.runs) needed.push_back(memory_needed(run.config));
  std::sort(needed.begin(), needed.end(), std::greater<>());
  const auto at_a_time = std::min<std::size_t>(static_cast<std::size_t>(jobs), needed.size());
  const auto available = available_memory();
  double sum = 0;
  std::size_t fitting = 0;
  for (std::size_t i = 0; i < at_a_time; ++i) {
    sum += needed[i];
    if (sum <= available) fitting = i + 1;
  }
  std::string line = fmt::format("memory: about {} for {} at a time, of {} that the machine has left",
                                 short_bytes(sum), at_a_time, short_bytes(available));
  if (fitting < at_a_time) {
    line += fitting == 0 ? ": not even one run may fit" : fmt::format(": too many, --jobs {} fits", fitting);
  }
  return line;
}

std::string memory_warning(const Experiment& experiment) {
  const Run* largest = nullptr;
  double needed = 0;
  for (const Run& run : experiment.runs) {
    if (run.seed != experiment.seeds.front()) continue;
    if (const double bytes = memory_needed(run.config); bytes > needed) {
      needed = bytes;
      largest = &run;
    }
  }
  const double machine = memory_of_machine();
  if (largest == nullptr || needed <= machine) return {};
  return fmt::format("{}: warning: {} needs about {} of memory, and the machine has {}\n",
                     experiment.file.string(), largest->name, short_bytes(needed), short_bytes(machine));
}

std::string plan_of(const Experiment& experiment) {
  const double rate = product_rate() * kShareOfProductRate;
  TextTable table;
  table.header = {"variant", "point",  "seeds",       "steps",   "tokens", "trained",
                  "params",  "active", "FLOPs/token", "compute", "memory", "time"};
  table.num_keys = 2;
  double total_seconds = 0;
  const std::string baseline = experiment.compare.baseline.value_or(experiment.variants.front());
  std::vector<std::pair<const Run*, Accounting>> counted;
  for (const Run& run : experiment.runs) {
    if (run.seed != experiment.seeds.front()) continue;
    counted.emplace_back(&run, account_run(run.config));
  }
  // Relative to the baseline at the same point.
  const auto relative_flops = [&](const Run& run, const Accounting& accounting) -> std::string {
    const Run* base = baseline_run(experiment, run);
    if (base == nullptr) return "-";
    const auto its = std::ranges::find(counted, base, &std::pair<const Run*, Accounting>::first);
    return fmt::format("{:.3f}", static_cast<double>(accounting.forward_flops()) /
                                     static_cast<double>(its->second.forward_flops()));
  };
  const bool is_swept =
      std::ranges::count_if(counted, [&](const auto& entry) { return entry.first->variant == baseline; }) > 1;
  for (const auto& [run, accounting] : counted) {
    const TrainConfig& train = run->config.train;
    const auto tokens = static_cast<double>(train.num_steps() * train.batch_tokens);
    const auto seeds = static_cast<double>(experiment.seeds.size());
    const auto trained = static_cast<double>((train.num_steps() - run->trunk_step) * train.batch_tokens);
    const double seconds = seeds * trained * static_cast<double>(accounting.training_flops()) / rate;
    total_seconds += seconds;
    table.rows.push_back({run->variant, run->point ? fmt::format("{}", *run->point) : "-",
                          fmt::format("{}", experiment.seeds.size()), fmt::format("{}", train.num_steps()),
                          with_si_prefix(tokens), with_si_prefix(trained),
                          with_si_prefix(static_cast<double>(accounting.total)),
                          with_si_prefix(static_cast<double>(accounting.active_all)),
                          with_si_prefix(static_cast<double>(accounting.forward_flops())),
                          relative_flops(*run, accounting),
                          short_bytes(memory_needed(run->config, accounting)), short_time(seconds)});
  }
  std::string out = fmt::format("{}: {} variants, {} seeds, {} runs\n\n{}", experiment.name,
                                experiment.variants.size(), experiment.seeds.size(), experiment.runs.size(),
                                to_terminal(table, columns_of(stdout, kAnyWidth)));
  out += points_of(experiment);
  out += fmt::format(
      "\ntrained: tokens without those of the trunk that a branch leaves\n"
      "compute: forward FLOPs relative to {}{}; memory: weights, gradients, moments and about what one "
      "micro-batch and the records of the routing take\n"
      "time: about {} in all, one run after another, at {:.0f} GFLOP/s on {} threads (a share of what "
      "one product just reached)\n",
      baseline, is_swept ? " at the same point" : "", short_time(total_seconds), rate / 1e9,
      parallel::threads());
  const std::vector<std::string> warnings = comparability_warnings(experiment);
  if (!warnings.empty()) out += "\nnot comparable\n";
  for (const std::string& warning : warnings) out += warning + '\n';
  if (warnings.empty() && experiment.compare.match != "none" && experiment.variants.size() > 1) {
    out += fmt::format("\nevery variant agrees with {}{} in {} within {:.1f} %\n", baseline,
                       is_swept ? " at the same point" : "", experiment.compare.match,
                       100 * experiment.compare.tolerance);
  }
  return out;
}

}  // namespace moelab::cli
