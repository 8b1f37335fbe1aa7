#include "tests/fuzz/readers.hpp"

#include "core/checkpoint.hpp"
#include "core/error.hpp"
#include "experiments/accounting/count_files.hpp"
#include "experiments/compare/compare_files.hpp"
#include "experiments/compare/condition.hpp"
#include "experiments/compare/render.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/data/corpus.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/results/describe.hpp"
#include "experiments/results/export.hpp"
#include "experiments/results/journal.hpp"
#include "experiments/results/run_info_json.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fstream>

namespace moelab {

namespace {

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
  load_experiment(file_of("version: 1\n"
                          "data: {kind: synthetic, num_features: 4, num_targets: 4}\n"
                          "model: {kind: ffn, d_model: 4, num_layers: 1, ffn: {activation: relu, d_ff: 8}}\n"
                          "train: {max_steps: 1, batch_tokens: 8, optimizer: {lr: 1e-3}}\n",
                          "base.yaml"),
                  options);
}

void read_published(std::string_view bytes) {
  count_files({{file_of(bytes, "config.json").string()}, {}, false});
}

void read_journal_file(std::string_view bytes) {
  RunData data;
  data.info.domains = {"prose"};
  data.info.moe_layers = {{0, 4, 2}};
  read_journal(file_of(bytes, "metrics.jsonl"), data);
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
      reader("checkpoint", read_checkpoint),
      reader("condition", read_condition),
      reader("corpus", [](std::string_view bytes) { load_corpus(file_of(bytes, "corpus.yaml")); }),
      reader("experiment", read_experiment),
      reader("journal", read_journal_file),
      reader("overrides", read_overrides),
      reader("published", read_published),
      reader("results", read_results),
      reader("run_info", [](std::string_view bytes) { read_run_info(file_of(bytes, "run.json")); }),
      reader("tokens", read_tokens),
  };
  return readers;
}

}  // namespace moelab
