#include "tests/fuzz/readers.hpp"

#include "core/checkpoint.hpp"
#include "core/error.hpp"
#include "experiments/accounting/count_files.hpp"
#include "experiments/compare/compare_files.hpp"
#include "experiments/compare/condition.hpp"
#include "experiments/compare/render.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/data/bpe_tokenizer.hpp"
#include "experiments/data/corpus.hpp"
#include "experiments/data/domain_tokens.hpp"
#include "experiments/data/idx_file.hpp"
#include "experiments/data/token_array.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/plot/figures.hpp"
#include "experiments/report/report.hpp"
#include "experiments/results/describe.hpp"
#include "experiments/results/experiment_json.hpp"
#include "experiments/results/export.hpp"
#include "experiments/results/journal.hpp"
#include "experiments/results/journal_format.hpp"
#include "experiments/results/recover.hpp"
#include "experiments/results/run_group.hpp"
#include "experiments/results/run_info_json.hpp"
#include "experiments/results/run_store.hpp"
#include "experiments/training/load_execution.hpp"
#include "tests/fuzz/edited_results.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <fstream>

namespace moelab {

namespace {

constexpr const char* kBase =
    "version: 1\n"
    "data: {kind: synthetic, num_features: 4, num_targets: 4}\n"
    "model: {kind: ffn, d_model: 4, num_layers: 1, ffn: {activation: relu, d_ff: 8}}\n"
    "train: {max_steps: 1, batch_tokens: 8, optimizer: {lr: 1e-3}}\n";

// The bytes as a file of a folder that goes with the program.
std::filesystem::path file_of(std::string_view bytes, const std::string& name) {
  static const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / name;
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

LoadOptions without_data() {
  LoadOptions options;
  options.look_for_data = false;
  return options;
}

void read_experiment(std::string_view bytes) { load_experiment(file_of(bytes, "e.yaml"), without_data()); }

// One override a line, on a sound experiment.
void read_overrides(std::string_view bytes) {
  LoadOptions options = without_data();
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    options.overrides.emplace_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  load_experiment(file_of(kBase, "base.yaml"), options);
}

// The folder of an execution without runs, with an execution.json that is sound.
void write_execution(const TemporaryFolder& folder) {
  folder.write("experiment.yaml", kBase);
  folder.write("source_folder.txt", folder.path().string());
  folder.write("execution.json",
               R"({"version": 2, "overrides": [], "runs": [], "other_runs": [], "initial_weights": {},
                                      "initial_checksums": {}})");
}

// What --resume makes of it.
void read_execution(std::string_view bytes) {
  static const TemporaryFolder folder;
  write_execution(folder);
  folder.write("execution.json", std::string(bytes));
  const ExecutionRecord record = RunStore::open(folder.path()).record();
  load_execution(folder.path(), {});
  RunStore::open(folder.path()).set_record(record);
  if (RunStore::open(folder.path()).record() != record) {
    throw std::logic_error("an execution.json that is not what was written");
  }
}

// What recover makes of it: the results file says the same.
void read_experiment_info(std::string_view bytes) {
  static const TemporaryFolder folder;
  write_execution(folder);
  const std::filesystem::path path = folder.write("experiment.json", std::string(bytes));
  const std::filesystem::path results = folder.path() / "results.h5";
  std::filesystem::remove(results);
  const ExperimentInfo info = read_experiment_json(path);
  recover(folder.path());
  const ResultsFile file(results);
  describe_file(file);
  const ExperimentInfo& kept = file.experiment();
  if (kept.name != info.name || kept.description != info.description || kept.baseline != info.baseline ||
      kept.metric != info.metric || kept.confidence != info.confidence) {
    throw std::logic_error("a results file that says something else than experiment.json");
  }
}

// about.json of an entry in the cache of tokens: whatever it says, the tokens are those of the text.
void read_cache_about(std::string_view bytes) {
  static const TemporaryFolder folder;
  static const DomainFiles domain{{"one", {}, 1.0, ""},
                                  {folder.write("one.txt", "a text of which the last part is held out\n")}};
  const auto tokenizer = make_byte_tokenizer();
  const CacheFolder cache(folder.path() / "cache");
  const std::string hash = hash_of_documents(domain, 0.25);
  const auto read = [&] {
    return cached_domain_tokens(domain, 0.25, *tokenizer, hash, cache, [](const std::string&) {});
  };
  const DomainTokens expected = read_domain_tokens(domain, 0.25, *tokenizer);
  read();
  for (const auto& entry : std::filesystem::directory_iterator(cache.root())) {
    if (!std::filesystem::exists(entry.path() / "about.json")) continue;
    std::ofstream(entry.path() / "about.json", std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  const DomainTokens tokens = read();
  if (!std::ranges::equal(tokens.train.ids(), expected.train.ids()) ||
      !std::ranges::equal(tokens.eval.ids(), expected.eval.ids())) {
    throw std::logic_error("an entry of the cache that has the tokens of another text");
  }
}

void read_published(std::string_view bytes) {
  count_files({{file_of(bytes, "config.json").string()}, {}, false});
}

// As it is, and with the sum that belongs to it at the end of each line.
void read_journal_file(std::string_view bytes) {
  std::string sealed;
  for_lines(std::string(bytes), [&](auto, std::string_view line) {
    sealed += sealed_line(std::string(line.substr(0, line.rfind('}'))));
    return true;
  });
  for (const std::string_view text : {bytes, std::string_view(sealed)}) {
    RunData data;
    data.info.domains = {"prose"};
    data.info.moe_layers = {{0, 4, 2}};
    try {
      read_journal(file_of(text, "metrics.jsonl"), data);
      run_group(data);
    } catch (const Error&) {
    }
  }
}

void read_results(std::string_view bytes) {
  const ResultsFile file(file_of(bytes, "results.h5"));
  describe_file(file);
  for (const RunSummary& run : file.runs()) {
    describe_run(file, run.run);
    all_series(file, run.run);
  }
  if (!file.runs().empty()) render(compare_file(file), TableFormat::json);
  file.reader().group();
}

// Everything that a command makes of a results file. What one of them refuses, the others may still show.
void read_edited_results(std::string_view bytes) {
  static const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "results.h5";
  write_edited_results(path, bytes);
  const ResultsFile file(path);
  const auto attempt = [](const auto& read) {
    try {
      read();
    } catch (const Error&) {
      // Refused, in words.
    }
  };
  attempt([&] { describe_file(file); });
  for (const RunSummary& run : file.runs()) attempt([&] { describe_run(file, run.run); });
  attempt([&] { render(compare_file(file), TableFormat::json); });
  attempt([&] { report::to_html(file); });
  for (const plot::FigureKind& kind : plot::figure_kinds()) {
    attempt([&] { plot::to_svg(plot::make_figure(file, kind.name, {})); });
  }
  attempt([&] { export_csv(file, folder.path() / "csv"); });
  attempt([&] { export_jsonl(file, folder.path() / "jsonl"); });
  attempt([&] { export_tensorboard(file, folder.path() / "tensorboard"); });
}

// The count of values is that of the shape, also where the product of the sizes is beyond 64 bits.
void read_images(std::string_view bytes) {
  const IdxFile file = read_idx_file(file_of(bytes, "images-idx3-ubyte").string());
  std::size_t left = file.values.size();
  for (const std::int64_t size : file.shape) {
    if (size == 0 ? left != 0 : left % static_cast<std::size_t>(size) != 0) {
      throw std::logic_error("an idx file whose values are not of its shape");
    }
    if (size == 0) return;
    left /= static_cast<std::size_t>(size);
  }
  if (left != 1) throw std::logic_error("an idx file whose values are not of its shape");
}

void read_checkpoint(std::string_view bytes) {
  const CheckpointReader reader(file_of(bytes, "step_1.h5"));
  reader.verify();
  reader.extra();
  for (const std::string& name : reader.parameter_names()) reader.parameter(name);
}

void read_tokens(std::string_view bytes) {
  const auto tokenizer = make_byte_tokenizer();
  std::vector<std::int32_t> ids;
  tokenizer->encode(bytes, ids);
  if (tokenizer->decode(ids) != bytes) throw std::logic_error("decode is not the inverse of encode");
  printable(bytes);
}

void read_condition(std::string_view bytes) { parse_condition(std::string(bytes)); }

FuzzedReader reader(const char* name, void (*read)(std::string_view)) {
  return {name, [read](std::string_view bytes) {
            try {
              read(bytes);
            } catch (const Error&) {
              // Refused, in words.
            }
          }};
}

}  // namespace

const std::vector<FuzzedReader>& fuzzed_readers() {
  static const std::vector<FuzzedReader> readers = {
      reader("bpe", [](std::string_view bytes) { parse_bpe_file("bpe.jsonl", bytes); }),
      reader("cache_about", read_cache_about),
      reader("checkpoint", read_checkpoint),
      reader("condition", read_condition),
      reader("corpus", [](std::string_view bytes) { load_corpus(file_of(bytes, "corpus.yaml")); }),
      reader("edited_results", read_edited_results),
      reader("execution", read_execution),
      reader("experiment", read_experiment),
      reader("experiment_info", read_experiment_info),
      reader("images", read_images),
      reader("journal", read_journal_file),
      reader("overrides", read_overrides),
      reader("published", read_published),
      reader("results", read_results),
      reader("run_info", [](std::string_view bytes) { read_run_info(file_of(bytes, "run.json")); }),
      reader("token_cache", [](std::string_view bytes) { TokenArray(file_of(bytes, "ids.npy")).checksum(); }),
      reader("tokens", read_tokens),
  };
  return readers;
}

}  // namespace moelab
