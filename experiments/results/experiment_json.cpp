#include "experiments/results/experiment_json.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json_text.hpp"

namespace moelab {

void write_experiment_json(const std::filesystem::path& path, const ExperimentInfo& info) {
  const nlohmann::ordered_json json = {{"name", info.name},
                                       {"description", info.description},
                                       {"baseline", info.baseline},
                                       {"metric", info.metric},
                                       {"confidence", info.confidence}};
  replace_file(path, json_text(json, 2) + "\n");
}

ExperimentInfo read_experiment_json(const std::filesystem::path& path) {
  try {
    const auto json = nlohmann::json::parse(read_file(path));
    ExperimentInfo info;
    info.name = json.at("name").get<std::string>();
    info.description = json.at("description").get<std::string>();
    info.baseline = json.at("baseline").get<std::string>();
    info.metric = json.at("metric").get<std::string>();
    info.confidence = json.at("confidence").get<double>();
    require(info.confidence > 0 && info.confidence < 1, "[results] {}: confidence={} is not between 0 and 1",
            path.string(), info.confidence);
    return info;
  } catch (const nlohmann::json::exception& error) {
    fail("[results] {} does not describe an experiment: {}", path.string(), error.what());
  }
}

ExperimentInfo read_experiment(const RunStore& store) {
  ExperimentInfo info = read_experiment_json(store.info_path());
  info.config_source = store.experiment_yaml();
  info.overrides = store.record().overrides;
  return info;
}

}  // namespace moelab
