#include "experiments/config/run_files.hpp"

#include "core/checkpoint.hpp"
#include "core/damaged_file.hpp"
#include "core/fields_writer.hpp"
#include "core/file.hpp"
#include "experiments/accounting/variants.hpp"
#include "experiments/config/patch.hpp"
#include "experiments/data/corpus.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/models/make_model.hpp"
#include "experiments/models/upcycle.hpp"
#include "experiments/training/checkpoint_folder.hpp"

namespace moelab {

using yaml::Node;

namespace {

// Where a path of a domain stands in the file; the closest thing where it stands elsewhere.
Mark mark_of_domain(const Node& tree, const std::string& name) {
  const Node* data = tree.find("data");
  if (data == nullptr) return tree.mark;
  if (const Node* domains = data->find("domains")) {
    for (const Node& domain : domains->items) {
      const Node* its_name = domain.find("name");
      if (its_name == nullptr || its_name->text != name) continue;
      const Node* path = domain.find("path");
      return path == nullptr ? domain.mark : path->mark;
    }
  }
  const Node* corpus = data->find("corpus");
  return corpus == nullptr ? data->mark : corpus->mark;
}

}  // namespace

void RunFiles::find(const Node& tree, RunConfig& config, Diagnostics& told) {
  find_initial_weights(tree, config, told);
  try {
    resolve_data(config.data, folder_);
  } catch (const Error& e) {
    const Node* corpus = find_path(tree, "data.corpus");
    told.error(corpus == nullptr ? tree.mark : corpus->mark, "data.corpus: the corpus file is in error",
               e.what());
    return;
  }
  if (!look_for_data_) return;
  const TokenizerConfig& tokenizer = config.data.text.tokenizer;
  if (config.data.kind == "text" && !tokenizer.file.empty()) {
    try {
      vocab_size_of(tokenizer);
    } catch (const Error& e) {
      const Node* file = find_path(tree, "data.tokenizer.file");
      told.error(file == nullptr ? tree.mark : file->mark, "data.tokenizer.file: it cannot be used",
                 e.what());
      return;
    }
  }
  for (const MissingData& missing : missing_of(config.data)) {
    told.error(mark_of_domain(tree, missing.domain), missing.message());
  }
  if (told.num_errors() == 0) check_initial_tables(tree, config, told);
}

// Once the vocabulary is known. Only of checkpoints that runs are to start from now.
void RunFiles::check_initial_tables(const Node& tree, const RunConfig& config, Diagnostics& told) {
  if (!config.model.init || !checkpoints_.contains(config.model.init->upcycle)) return;
  const std::unique_ptr<Model> model = make_model(config.model, planned_shape(config.data));
  const CheckpointReader& checkpoint = checkpoint_of(config.model.init->upcycle);
  for (const std::string& problem : upcycle_table_problems(*model, checkpoint)) {
    told.error(
        find_path(tree, "model.init")->mark,
        fmt::format("model.init: the model cannot start from {}: {}", checkpoint.path().string(), problem));
  }
}

// Files are listed once for all runs with the same data.
const std::vector<MissingData>& RunFiles::missing_of(DataConfig data) {
  const auto [entry, is_new] = missing_.try_emplace(yaml::emit(write_fields(data)));
  if (is_new) entry->second = missing_data(data);
  return entry->second;
}

// Opened, which reads all of it, once for all runs that start from it.
const CheckpointReader& RunFiles::checkpoint_of(const std::string& file) {
  std::unique_ptr<const CheckpointReader>& reader = checkpoints_[file];
  if (!reader) reader = std::make_unique<const CheckpointReader>(file);
  return *reader;
}

// What stands against initial weights of before; empty: nothing. Runs that started from them would stand
// beside runs that start from others. That they are gone is told by the runs that need them.
const std::string& RunFiles::problem_of_known(const std::string& file) {
  const auto [problem, is_new] = problems_.try_emplace(file);
  const auto checksum = initial_checksums_.find(file);
  if (!is_new || checksum == initial_checksums_.end() || !file_exists(file)) return problem->second;
  std::string now;
  try {
    now = hdf5::checksum_of(file);
  } catch (const DamagedFile&) {
    now = "damaged";
  }
  if (now != checksum->second) {
    problem->second = fmt::format(
        "model.init: {} is not the file any more that the execution was begun with: its checksum was {} and "
        "is {}",
        file, checksum->second, now);
  }
  return problem->second;
}

void RunFiles::find_initial_weights(const Node& tree, RunConfig& config, Diagnostics& told) {
  if (!config.model.init) return;
  const Node* node = find_path(tree, "model.init");
  const Mark mark = node == nullptr ? tree.mark : node->mark;
  std::string& file = config.model.init->upcycle;
  const std::string written = (folder_ / file).lexically_normal().string();
  file = written;
  if (!look_for_data_) return;
  if (const auto known = known_weights_.find(written); known != known_weights_.end()) {
    file = known->second;
    if (const std::string& problem = problem_of_known(file); !problem.empty()) {
      told.error(mark, problem,
                 "put the old one back; without any, runs go on that have a checkpoint of their own");
    }
    return;
  }
  try {
    // Not by way of `latest`, which will mean another one.
    file = std::filesystem::canonical(checkpoint_at(file)).string();
    const CheckpointReader& checkpoint = checkpoint_of(file);
    initial_weights_[written] = file;
    if (!initial_checksums_.contains(file)) initial_checksums_[file] = hdf5::checksum_of(file);
    for (const std::string& problem : upcycle_problems(config.model, checkpoint)) {
      told.error(mark, fmt::format("model.init: the model cannot start from {}: {}", file, problem));
    }
  } catch (const Error& e) {
    told.error(mark, fmt::format("model.init: {}", e.what()));
  }
}

}  // namespace moelab
