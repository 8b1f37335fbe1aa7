#include "experiments/training/run_one.hpp"

#include "core/crc32.hpp"
#include "core/damaged_file.hpp"
#include "core/file.hpp"
#include "core/json_text.hpp"
#include "experiments/accounting/accounting.hpp"
#include "experiments/models/make_model.hpp"
#include "experiments/models/upcycle.hpp"
#include "experiments/results/provenance.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/training/memory_needed.hpp"
#include "experiments/training/resources.hpp"
#include "experiments/training/resume_point.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>

namespace moelab {

namespace {

// The accounting as the results file holds it.
AccountingTable table_of(const Accounting& accounting) {
  AccountingTable table;
  for (const ModuleRow& row : accounting.modules) {
    table.rows.push_back({row.group, row.group, row.params_total, static_cast<double>(row.params_active),
                          static_cast<double>(row.product_flops)});
  }
  table.params_total = accounting.total;
  table.params_active = static_cast<double>(accounting.active_all);
  table.params_active_without_input_embedding =
      static_cast<double>(accounting.active_without_input_embedding);
  table.params_active_without_embeddings = static_cast<double>(accounting.active_without_embeddings);
  table.flops_forward_per_token = static_cast<double>(accounting.forward_flops());
  table.flops_forward_per_token_causal = static_cast<double>(accounting.forward_flops_causal());
  table.active_compute_ratio = accounting.active_compute_ratio();
  for (const auto& [name, meaning] : Accounting::conventions()) {
    table.conventions += fmt::format("{}: {}\n", name, meaning);
  }
  return table;
}

std::string settings_json(const SweepPoint& point) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  for (const auto& [key, value] : point.settings) settings[key] = value;
  return json_text(settings);
}

// Of what its data.json says; empty where the config alone makes the data.
std::string checksum_of(const Dataset& data) {
  for (const auto& [name, content] : data.files()) {
    if (name == kAboutData) return fmt::format("{:08x}", crc32_of(std::as_bytes(std::span(content))));
  }
  return {};
}

RunInfo info_of(const Run& run, const SweepPoint& point, Model& model, const Dataset& data,
                const std::vector<std::pair<std::string, std::string>>& provenance) {
  RunInfo info;
  info.name = run.name;
  info.variant = run.variant;
  info.seed = static_cast<std::uint64_t>(run.seed);
  info.sweep_point = settings_json(point);
  info.config_resolved = run.resolved_yaml;
  info.dataset = run.config.data.kind;
  info.domains = data.domains();
  info.moe_layers = moe_layers(model);
  info.accounting = table_of(account(model, data.seq_len()));
  info.provenance = provenance;
  if (const std::string checksum = checksum_of(data); !checksum.empty())
    info.provenance.emplace_back(kDataChecksum, checksum);
  return info;
}

// The lines of log.txt.
std::shared_ptr<spdlog::logger> open_log(const std::filesystem::path& folder) {
  auto log = std::make_shared<spdlog::logger>(
      "run", std::make_shared<spdlog::sinks::basic_file_sink_mt>((folder / "log.txt").string()));
  log->set_pattern("%Y-%m-%dT%H:%M:%S%z %v");
  log->flush_on(spdlog::level::info);
  return log;
}

// Leaves the files of the data with the results. A run that goes on must see the same data as before.
void keep_data_files(const Run& run, const RunSetup& setup, bool goes_on) {
  for (const auto& [name, content] : setup.data.files()) {
    const std::filesystem::path file = setup.folder / name;
    if (goes_on && std::filesystem::exists(file) && read_file(file) != content) {
      throw ConfigError(fmt::format("{}: cannot go on: the data have changed, {} would be another", run.name,
                                    file.string()));
    }
    replace_file(file, content);
  }
}

void say_what_is_unusual(const Run& run, Model& model, const std::function<void(const std::string&)>& note) {
  if (run.config.train.precision == "bfloat16" && !gemm::bfloat16_is_native()) {
    note("precision: this machine has no bfloat16 products; they are computed in float32");
  }
  const auto blocks = model.ffn_blocks();
  for (std::size_t l = 0; l < blocks.size(); ++l) {
    if (run.config.model.kind != "decoder" || blocks[l]->is_causal()) continue;
    note(fmt::format(
        "layer {}: its routing looks at later tokens, so the loss of this decoder is not that of a "
        "causal language model",
        l));
  }
}

// What a domain has, and what is to be beaten in it: a model that knows how often each byte comes, and no
// more.
std::string line_of(const DomainStatistics& domain) {
  std::string line = fmt::format("domain {}: {} training tokens, {} held out", domain.name,
                                 domain.train_tokens > 0 ? fmt::format("{}", domain.train_tokens) : "endless",
                                 domain.eval_tokens);
  if (std::isfinite(domain.order0_bits_per_byte)) {
    line += fmt::format(", order-0 entropy {:.3f} bits a byte", domain.order0_bits_per_byte);
  }
  return line;
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The time that a run has taken before, as far as its last snapshot or the checkpoint knows.
double seconds_of_earlier(const std::filesystem::path& folder,
                          const std::optional<CheckpointReader>& checkpoint) {
  double seconds = checkpoint ? checkpoint->training().train_seconds : 0;
  if (!file_exists(folder / "run.h5")) return seconds;
  try {
    const ResultsFile snapshot(folder / "run.h5");
    for (const RunSummary& run : snapshot.runs()) seconds = std::fmax(seconds, run.wall_seconds);
  } catch (const DamagedFile&) {
    // That does not keep the run from going on.
  }
  return seconds;
}

// Sets the weights that the run starts from, if any.
void start_from_weights(const Run& run, const RunSetup& setup, Model& model,
                        const std::function<void(const std::string&)>& note) {
  const std::optional<InitConfig>& init = run.config.model.init;
  if (!init) return;
  const CheckpointReader weights(init->upcycle);
  require(setup.initial_checksum.empty() || hdf5::checksum_of(init->upcycle) == setup.initial_checksum,
          "{} is not the file any more that the runs of this execution start from", init->upcycle);
  for (const std::string& line :
       upcycle(model, run.config.model, weights, init->noise, static_cast<std::uint64_t>(run.seed))) {
    note(line);
  }
}

// `steps`: those taken before; then also those of this training, however it ends. The checkpoint is let go
// of once it is read: it would keep its space on the disk when it is pruned.
RunResult train_run(const Run& run, const RunSetup& setup, const TrainerHooks& hooks, Model& model,
                    Recorder& recorder, std::optional<CheckpointReader>& checkpoint, std::int64_t& steps) {
  std::optional<Trainer> trainer;
  RunResult result;
  try {
    trainer.emplace(run, model, setup.data, recorder, hooks);
    if (checkpoint) {
      trainer->restore(*checkpoint);
      checkpoint.reset();
    } else {
      start_from_weights(run, setup, model, hooks.note);
    }
    result.status = trainer->train();
    if (result.status == RunStatus::interrupted) {
      result.reason = fmt::format("stopped at step {}", trainer->step());
    }
  } catch (const NonFiniteError& e) {
    result = {RunStatus::diverged, e.what()};
  } catch (const std::exception& e) {
    result = {RunStatus::failed, reason_of(e, run.config)};
  }
  if (trainer) steps = std::max(steps, trainer->step());
  return result;
}

}  // namespace

void require_resumable(const Run& run, const RunSetup& setup) {
  const std::unique_ptr<Model> model = make_model(run.config.model, shape_of(setup.data));
  const RunInfo info = info_of(run, setup.point, *model, setup.data, setup.provenance);
  find_resume_point(run, setup.folder, info, [](const std::string&) {});
}

RunResult run_one(const Run& run, const RunSetup& setup) {
  const Stopwatch stopwatch;
  const auto log = open_log(setup.folder);
  const auto note = [&](const std::string& text) {
    log->info(text);
    setup.note(text);
  };
  const std::unique_ptr<Model> model = make_model(run.config.model, shape_of(setup.data));
  RunInfo info = info_of(run, setup.point, *model, setup.data, setup.provenance);
  ResumePoint point = setup.resume ? find_resume_point(run, setup.folder, info, note) : ResumePoint{};
  std::optional<CheckpointReader>& checkpoint = point.checkpoint;
  const std::int64_t first_step = checkpoint ? checkpoint->training().step : 0;
  const double seconds_before = setup.resume ? seconds_of_earlier(setup.folder, checkpoint) : 0;
  keep_data_files(run, setup, checkpoint.has_value());
  set_aside(point.passed_over, note);
  // What may change has changed.
  if (setup.resume) replace_file(setup.folder / "resolved.yaml", run.resolved_yaml);
  Recorder recorder = setup.resume ? Recorder::resume(setup.folder, std::move(info), first_step)
                                   : Recorder::create(setup.folder, std::move(info));
  if (!recorder.lock_problem().empty()) note(recorder.lock_problem());
  say_what_is_unusual(run, *model, note);
  for (const DomainStatistics& domain : setup.data.statistics()) log->info("{}", line_of(domain));
  log->info("{} starts at step {} of {}", run.name, first_step, run.config.train.num_steps());
  setup.begun(first_step);
  std::int64_t steps = first_step;
  const auto set_resources = [&](std::int64_t step) {
    Resources resources;
    resources.wall_seconds = seconds_before + stopwatch.seconds();
    resources.peak_rss_bytes = peak_resident_bytes();
    resources.train_flops = 3 * recorder.data().info.accounting.flops_forward_per_token *
                            static_cast<double>(step) * static_cast<double>(run.config.train.batch_tokens);
    recorder.set_resources(resources);
  };
  set_resources(first_step);
  TrainerHooks hooks = setup.hooks;
  hooks.note = note;
  // Snapshots are written at evaluations; a run that is killed goes on with the time up to the last.
  hooks.report = [&](const TrainerStatus& status, bool important) {
    if (important) set_resources(status.step);
    setup.hooks.report(status, important);
  };
  const RunResult result = train_run(run, setup, hooks, *model, recorder, checkpoint, steps);
  log->info("{} {} at step {}{}{}", run.name, to_string(result.status), steps,
            result.reason.empty() ? "" : ": ", result.reason);
  set_resources(steps);
  recorder.set_status(result.status, result.reason);
  recorder.write_snapshot();
  return result;
}

}  // namespace moelab
