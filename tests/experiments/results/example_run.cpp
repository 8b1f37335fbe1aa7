#include "tests/experiments/results/example_run.hpp"

#include "experiments/results/results_file.hpp"

#include <cmath>

namespace moelab {

namespace {

void make_dense(RunData& data) {
  data.info.moe_layers.clear();
  data.routing.clear();
  data.statistics = {};
  data.samples = {};
}

std::filesystem::path write_run(const std::filesystem::path& folder, const RunData& data) {
  const std::filesystem::path file = folder / (data.info.name + ".h5");
  write_run_file(file, data);
  return file;
}

// Compared with the variant `dense`.
std::filesystem::path write_experiment(const std::filesystem::path& folder, const std::string& name,
                                       const std::vector<std::filesystem::path>& files) {
  ExperimentInfo experiment;
  experiment.name = name;
  experiment.baseline = "dense";
  write_results_file(folder / (name + ".h5"), experiment, files);
  return folder / (name + ".h5");
}

}  // namespace

RunInfo example_info(const std::string& variant, std::uint64_t seed) {
  RunInfo info;
  info.name = variant + "-s" + std::to_string(seed);
  info.variant = variant;
  info.seed = seed;
  info.config_resolved = "version: 1\nname: example  # Größe\n";
  info.dataset = "text";
  info.domains = {"prose", "c++"};
  info.moe_layers = {{1, 4, 2}, {3, 2, 1}};
  AccountingTable& a = info.accounting;
  a.rows = {{"embed", "embedding", 1000, 1000, 0}, {"layers.1.ffn", "experts", 4000, 2000, 4000}};
  a.params_total = 5000;
  a.params_active = 3000;
  a.flops_forward_per_token = 6000;
  a.active_compute_ratio = 0.5;
  a.conventions = "one multiply-add is 2 FLOPs";
  info.provenance = {{"program", "moelab"}, {"hostname", "somewhere"}, {"seed_text", std::to_string(seed)}};
  return info;
}

TrainRecord example_train(std::int64_t step, double loss) {
  TrainRecord r;
  r.step = step;
  r.tokens = step * 100;
  r.time = 0.1 * static_cast<double>(step);
  r.loss = loss;
  r.auxiliary_losses = {{"load_balance", 1.0 + 1.0 / static_cast<double>(step)}};
  r.lr = 1e-3 / 3;
  r.grad_norm = step % 2 == 0 ? 0.7 : kNotMeasured;
  r.step_seconds = 0.1;
  r.tokens_per_second = 1000;
  r.active_compute_ratio = 0.5;
  return r;
}

EvalRecord example_eval(std::int64_t step, double loss) {
  EvalRecord r;
  r.step = step;
  r.tokens = step * 100;
  r.time = 0.1 * static_cast<double>(step);
  r.loss = loss;
  r.bits_per_byte = loss / 0.6931471805599453;
  r.loss_by_domain = {loss - 0.1, loss + 0.1};
  return r;
}

RoutingRecordRow example_routing(std::int64_t step) {
  RoutingRecordRow row;
  row.step = step;
  row.tokens = step * 100;
  const auto n = static_cast<std::int32_t>(step);
  LayerRouting wide;
  wide.expert_tokens = {n, n + 1, 0, 3};
  wide.expert_dropped = {0, 1, 0, 2};
  wide.router_probability_mean = {0.1F, 0.2F, 0.3F, 0.4F};
  wide.expert_bias = {0.001F, -0.001F, 0.0F, 1.0F / 3};
  wide.router_entropy = 1.3;
  wide.load_cv = 0.25;
  wide.dead_fraction = 0.25;
  wide.fraction_dropped = 0.01;
  LayerRouting narrow;
  narrow.expert_tokens = {7, n};
  narrow.load_cv = 1.0 / static_cast<double>(step);
  row.layers = {wide, narrow};
  return row;
}

EvaluationStatistics example_statistics() {
  EvaluationStatistics s;
  s.coactivation = {{9, 1, 2, 3, 1, 8, 0, 1, 2, 0, 7, 4, 3, 1, 4, 6}, {5, 1, 1, 6}};
  s.expert_tokens_by_domain = {{1, 2, 3, 4, 5, 6, 7, 8}, {10, 20, 30, 40}};
  s.vocabulary_specialisation = {0.5, 0.75};
  s.information_token = {0.4, 0.2};
  s.information_domain = {0.04, 0.02};
  s.saturation_steps = {1, 5};
  s.saturation = {{0.25, 0.5}, {1, 1}};
  return s;
}

RoutingSamples example_samples() {
  RoutingSamples s;
  s.num_samples = 2;
  s.num_positions = 3;
  s.num_slots = 2;
  s.domain = {0, 1};
  s.token_id = {5, 6, 7, 8, 9, -1};
  s.token_text = {"a", "b", "ü", "<", "&", ""};
  s.expert_id = {0, 1, 1, -1, 2, 3, 0, -1, 1, 0, 1, -1, 3, 2, 0, -1, 0, 3, 1, -1, -1, -1, -1, -1};
  s.weight = std::vector<float>(24, 0.5F);
  return s;
}

RunData example_run(const std::string& variant, std::uint64_t seed, double loss, std::int64_t steps) {
  RunData data;
  data.info = example_info(variant, seed);
  data.status = RunStatus::done;
  for (std::int64_t step = 1; step <= steps; ++step) {
    const double now = loss + 2.0 / static_cast<double>(step) - 2.0 / static_cast<double>(steps);
    data.train.push_back(example_train(step, now));
    data.eval.push_back(example_eval(step, now));
    if (step % 2 == 1) data.routing.push_back(example_routing(step));
  }
  data.statistics = example_statistics();
  data.samples = example_samples();
  data.resources = {12.5, 1e8, kNotMeasured};
  return data;
}

std::filesystem::path write_example_results(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  const std::vector<std::pair<std::string, double>> variants = {{"dense", 3.0}, {"moe", 2.8}};
  for (const auto& [variant, loss] : variants) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      RunData data = example_run(variant, seed, loss + 0.01 * static_cast<double>(seed * seed));
      if (variant == "dense") make_dense(data);
      files.push_back(write_run(folder, data));
    }
  }
  ExperimentInfo experiment;
  experiment.name = "example";
  experiment.description = "Does it help? <b>&";
  experiment.config_source = "name: example\n";
  experiment.overrides = {"train.max_steps=5"};
  experiment.baseline = "dense";
  write_results_file(folder / "results.h5", experiment, files);
  return folder / "results.h5";
}

std::filesystem::path write_hostile_results(const std::filesystem::path& folder) {
  const std::string script = "</text></svg></pre></title></style>\"'><script>document.title='run'</script>";
  const std::string image = "<img src=http://127.0.0.1:9/x onerror=\"document.title='run'\">";
  std::vector<std::filesystem::path> files;
  for (const bool is_mixture : {false, true}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      RunData data = example_run(is_mixture ? "moe" : "dense", seed, is_mixture ? 2.8 : 3.0);
      data.info.variant = (is_mixture ? "moe " : "dense ") + script;
      data.info.dataset = script;
      data.info.domains = {image, script};
      data.info.config_resolved = image + "\n" + (is_mixture ? script : "") + "\n";
      data.info.accounting.conventions = script;
      for (AccountingRow& row : data.info.accounting.rows) row.module = row.kind = image;
      for (auto& [key, value] : data.info.provenance) value = script;
      data.status_reason = image;
      for (std::string& text : data.samples.token_text) text = script;
      if (!is_mixture) make_dense(data);
      files.push_back(write_run(folder, data));
    }
  }
  ExperimentInfo experiment;
  experiment.name = script;
  experiment.description = image + script;
  experiment.config_source = script + image;
  experiment.overrides = {script, image};
  experiment.baseline = "dense " + script;
  write_results_file(folder / "hostile.h5", experiment, files);
  return folder / "hostile.h5";
}

std::filesystem::path write_example_study(const std::filesystem::path& folder) {
  struct Variant {
    std::string name;
    bool is_mixture;
    double loss, noise, params, active, flops, seconds;
  };
  const std::vector<Variant> variants = {{"dense", false, 3.0, 0.03, 5000, 5000, 8000, 1},
                                         {"dense_large", false, 2.7, 0.02, 17000, 17000, 31000, 2.5},
                                         {"moe", true, 2.85, 0.05, 18000, 5100, 9000, 1.7},
                                         {"moe_even", true, 2.97, 0.06, 18000, 5050, 8500, 1.4}};
  std::vector<std::filesystem::path> files;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const double noise = variants[v].noise * std::sin(37.0 * static_cast<double>(seed * 4 + v + 1));
      RunData data = example_run(variants[v].name, seed, variants[v].loss + noise, 8);
      for (EvalRecord& e : data.eval) e.time *= variants[v].seconds * (1 + noise);
      data.info.accounting.params_total = static_cast<std::int64_t>(variants[v].params);
      data.info.accounting.params_active = variants[v].active;
      data.info.accounting.flops_forward_per_token = variants[v].flops;
      if (!variants[v].is_mixture) make_dense(data);
      files.push_back(write_run(folder, data));
    }
  }
  return write_experiment(folder, "study", files);
}

std::filesystem::path write_example_sweep(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const std::string variant : {"dense", "moe"}) {
    for (const int point : {0, 1}) {
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        const double noise = 0.02 * std::sin(37.0 * static_cast<double>(files.size() + 1));
        const double gain = variant == "moe" ? 0.1 + 0.2 * point : 0;
        RunData data = example_run(variant, seed, 3.0 + 0.3 * point - gain + noise);
        data.info.name += "-p" + std::to_string(point);
        data.info.sweep_point = std::string(R"({"data.path":"texts/prose_of_the_nineteenth_century",)") +
                                R"("train.optimizer.lr":")" + (point == 0 ? "1e-3" : "3e-3") + "\"}";
        if (variant == "dense") make_dense(data);
        files.push_back(write_run(folder, data));
      }
    }
  }
  return write_experiment(folder, "sweep", files);
}

}  // namespace moelab
