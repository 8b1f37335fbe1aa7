#include "experiments/results/run_store.hpp"

#include "core/error.hpp"
#include "core/json_text.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <ctime>

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace moelab {

namespace {

constexpr const char* kExperiment = "experiment.yaml";
constexpr const char* kSourceFolder = "source_folder.txt";
constexpr const char* kRecord = "execution.json";
constexpr std::int64_t kRecordVersion = 2;  // of it, and of the files of its runs that are gone on with
constexpr const char* kLatest = "latest";

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  require(!error, "[run_store] cannot make the folder {}: {}", path.string(), error.message());
}

std::string timestamp() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc)};
}

// The link is made beside and renamed over the old one, so that there always is one.
void point_latest_to(const std::filesystem::path& experiment_folder, const std::string& target) {
  const std::filesystem::path temporary =
      experiment_folder / (".latest-" + target + "-" + std::to_string(getpid()));
  std::error_code error;
  std::filesystem::remove(temporary, error);
  std::filesystem::create_directory_symlink(target, temporary, error);
  if (!error) std::filesystem::rename(temporary, experiment_folder / kLatest, error);
  if (!error) return;
  const std::string cause = error.message();
  std::filesystem::remove(temporary, error);
  fail("[run_store] cannot make the link {}: {}", (experiment_folder / kLatest).string(), cause);
}

// Names of runs in the order of the file, as far as execution.json can tell.
std::vector<std::string> trained_in(const RunStore& store) {
  try {
    return store.record().runs;
  } catch (const Error&) {
    return {};  // whoever needs the record is told
  }
}

}  // namespace

std::string sanitised_name(const std::string& name) {
  require(!name.empty(), "[run_store] a name is empty");
  std::string result;
  for (const char c : name.substr(0, kLongestName)) {
    const bool harmless =
        std::isalnum(static_cast<unsigned char>(c)) || std::string("_-.+=").find(c) != std::string::npos;
    result += harmless ? c : '_';
  }
  if (result[0] == '.' || result[0] == '-') result[0] = '_';
  return result;
}

RunStore RunStore::create(const std::filesystem::path& root, const std::string& name,
                          const std::string& experiment_yaml, const std::filesystem::path& source_folder,
                          const ExecutionRecord& record) {
  const std::filesystem::path experiment_folder = root / sanitised_name(name);
  make_folder(experiment_folder);
  const std::string stamp = timestamp();
  std::string chosen = stamp;
  for (int attempt = 2;; ++attempt) {
    std::error_code error;
    if (std::filesystem::create_directory(experiment_folder / chosen, error)) break;  // false: it is taken
    require(!error, "[run_store] cannot make the folder {}: {}", (experiment_folder / chosen).string(),
            error.message());
    chosen = stamp + "-" + std::to_string(attempt);
  }
  RunStore store(experiment_folder / chosen);
  store.lock();
  replace_file(store.folder_ / kExperiment, experiment_yaml);
  store.set_record(record);
  replace_file(store.folder_ / kSourceFolder, std::filesystem::absolute(source_folder).string());
  point_latest_to(experiment_folder, chosen);
  return store;
}

RunStore RunStore::open(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(folder, error);
  require(!error, "[run_store] cannot open {}: {}", folder.string(), error.message());
  require(std::filesystem::exists(real / kExperiment),
          "[run_store] {} is no folder of an experiment: it has no {}", folder.string(), kExperiment);
  return RunStore(real);
}

std::string RunStore::experiment_yaml() const { return read_file(folder_ / kExperiment); }

std::filesystem::path RunStore::source_folder() const { return read_file(folder_ / kSourceFolder); }

void RunStore::lock() {
  if (!lock_) lock_.emplace(folder_ / "lock", "trains the runs of " + folder_.string());
}

ExecutionRecord RunStore::record() const {
  const std::filesystem::path path = folder_ / kRecord;
  require(std::filesystem::exists(path),
          "[run_store] {} has no {}: it was begun by an earlier version, which is to finish it",
          folder_.string(), kRecord);
  try {
    const nlohmann::json json = nlohmann::json::parse(read_file(path));
    const nlohmann::json version = json.value("version", nlohmann::json(1));
    require(version == kRecordVersion,
            "[run_store] {} was begun by another version of this program, which is to finish it: "
            "{} has version {}, not {}",
            folder_.string(), kRecord, json_text(version), kRecordVersion);
    ExecutionRecord record;
    json.at("overrides").get_to(record.overrides);
    json.at("runs").get_to(record.runs);
    json.at("other_runs").get_to(record.other_runs);
    json.at("initial_weights").get_to(record.initial_weights);
    json.at("initial_checksums").get_to(record.initial_checksums);
    return record;
  } catch (const nlohmann::json::exception& error) {
    fail("[run_store] {} is damaged: {}", path.string(), error.what());
  }
}

void RunStore::set_record(const ExecutionRecord& record) const {
  const nlohmann::ordered_json json = {{"version", kRecordVersion},
                                       {"overrides", record.overrides},
                                       {"runs", record.runs},
                                       {"other_runs", record.other_runs},
                                       {"initial_weights", record.initial_weights},
                                       {"initial_checksums", record.initial_checksums}};
  replace_file(folder_ / kRecord, json_text(json, 1) + "\n");
}

std::filesystem::path RunStore::run_folder(const std::string& run) const {
  require(run == sanitised_name(run), "[run_store] '{}' is no name of a run", run);
  return folder_ / run;
}

std::filesystem::path RunStore::create_run(const std::string& run, const std::string& resolved_yaml) const {
  const std::filesystem::path folder = run_folder(run);
  make_folder(folder / "checkpoints");
  replace_file(folder / "resolved.yaml", resolved_yaml);
  return folder;
}

std::vector<std::string> RunStore::runs() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    if (entry.is_directory() && std::filesystem::exists(entry.path() / "resolved.yaml"))
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  const std::vector<std::string> order = trained_in(*this);
  std::map<std::string, std::size_t> place;
  for (const std::string& name : order) place.try_emplace(name, place.size());
  const auto place_of = [&](const std::string& name) {
    const auto it = place.find(name);
    return it == place.end() ? order.size() : it->second;
  };
  std::ranges::stable_sort(names, {}, place_of);
  return names;
}

std::vector<std::filesystem::path> RunStore::run_files() const {
  std::vector<std::filesystem::path> files;
  for (const std::string& run : runs())
    if (std::filesystem::exists(folder_ / run / "run.h5")) files.push_back(folder_ / run / "run.h5");
  return files;
}

}  // namespace moelab
