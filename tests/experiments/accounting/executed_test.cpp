// What is counted is what is executed and allocated: a training step of every experiment in configs/.
#include "core/gemm.hpp"
#include "core/ops/attention.hpp"
#include "core/random.hpp"
#include "experiments/accounting/variants.hpp"
#include "moe/cost.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <filesystem>

using namespace moelab;

namespace {

constexpr Index kSequences = 2;

Matrix random_rows(Index rows, Index cols, const char* name) {
  Matrix m(rows, cols);
  random::fill_normal(m, random::Stream(1, name), 1.0);
  return m;
}

Batch random_batch(const DataShape& shape) {
  Batch batch;
  batch.num_sequences = kSequences;
  batch.seq_len = shape.seq_len;
  const random::Stream stream(1, "tokens");
  for (Index i = 0; i < batch.size() && shape.vocab_size > 0; ++i) {
    const auto n = static_cast<std::uint64_t>(i);
    batch.inputs.push_back(
        static_cast<std::int32_t>(stream.below(2 * n, static_cast<std::uint64_t>(shape.vocab_size))));
    batch.targets.push_back(
        static_cast<std::int32_t>(stream.below(2 * n + 1, static_cast<std::uint64_t>(shape.vocab_size))));
  }
  if (shape.vocab_size == 0) {
    batch.features = random_rows(batch.size(), shape.num_features, "features");
    batch.regression_targets = random_rows(batch.size(), shape.num_targets, "targets");
  }
  if (shape.num_classes > 0) batch.targets.assign(kSequences, 0);
  return batch;
}

struct Executed {
  std::uint64_t forward = 0, backward = 0;  // multiply-adds
};

// Scores and values of one layer: a causal kernel leaves out blocks of keys, and recomputes in its backward
// pass.
Executed attention_alone(const ModelConfig& model, Index seq_len) {
  if (model.kind == "ffn") return {};
  const Index n = kSequences * seq_len;
  const Index kv_width = model.d_model / model.num_heads * model.kv_heads();
  const Variable q(random_rows(n, model.d_model, "q"), true), k(random_rows(n, kv_width, "k"), true),
      v(random_rows(n, kv_width, "v"), true);
  ops::AttentionOptions options;
  options.num_heads = model.num_heads;
  options.num_kv_heads = model.kv_heads();
  options.causal = model.kind == "decoder";
  const std::uint64_t start = gemm::multiply_adds();
  const Variable y = ops::attention(q, k, v, seq_len, {}, options);
  const std::uint64_t middle = gemm::multiply_adds();
  backward(y, Matrix::Ones(n, model.d_model));
  return {middle - start, gemm::multiply_adds() - middle};
}

std::uint64_t multiply_adds(double flops) { return static_cast<std::uint64_t>(flops / 2); }

void check_run(const Run& run) {
  const DataShape shape = planned_shape(run.config.data);
  const Accounting counted = account_run(run.config);
  const std::unique_ptr<Model> model = make_model(run.config.model, shape);
  ParameterStore store(*model, 0);
  std::int64_t allocated = 0;
  for (const NamedParameter& p : store.parameters()) allocated += p.parameter->value().size();
  CHECK(counted.total == allocated);

  ForwardContext context;
  context.training = context.record = true;
  const Batch batch = random_batch(shape);
  const Executed attention = attention_alone(run.config.model, shape.seq_len);
  const auto layers = static_cast<std::uint64_t>(run.config.model.num_layers);
  const auto n = static_cast<std::uint64_t>(batch.size());

  const std::uint64_t start = gemm::multiply_adds();
  const ModelOutput output = model->forward(batch, context);
  const std::uint64_t executed = gemm::multiply_adds() - start;
  // Mixtures are counted by the assignments that really happened; with a fixed k and no drops, those are
  // planned.
  double planned = 0, measured = 0;
  bool as_planned = true;
  std::size_t layer = 0;
  for (moe::FfnBlock* block : model->ffn_blocks()) {
    const auto& record = output.ffn[layer++].routing;
    if (!record) continue;
    const moe::PlannedCompute plan = moe::planned_compute(*block, shape.seq_len);
    planned += plan.active_flops * static_cast<double>(n);
    measured += record->active_flops;
    CHECK(record->full_flops == plan.full_flops * static_cast<double>(n));
    const bool dropped = std::count(record->kept.begin(), record->kept.end(), 0) > 0;
    as_planned =
        as_planned && !dropped && record->expert_of.size() == n * static_cast<std::uint64_t>(block->top_k());
  }
  const auto products = n * static_cast<std::uint64_t>(counted.product_flops) / 2;
  const std::uint64_t expected = products - multiply_adds(planned) + multiply_adds(measured);
  CHECK(executed == expected + layers * attention.forward);
  if (as_planned && planned > 0) CHECK(measured == planned);
  if (counted.attention_flops_full) {
    const std::uint64_t scores = 2 * layers * attention.forward;
    CHECK(scores <= n * static_cast<std::uint64_t>(*counted.attention_flops_full));
    CHECK(scores >= n * static_cast<std::uint64_t>(*counted.attention_flops_causal));
  }
}

}  // namespace

TEST_CASE("counted parameters are allocated and counted products executed, in every config") {
  LoadOptions options;
  options.solve_twin = solve_twin;
  options.look_for_data = false;
  int configs = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(MOELAB_SOURCE_DIR) + "/configs")) {
    // configs/corpora holds data, not experiments.
    if (entry.path().extension() != ".yaml" || entry.path().parent_path().filename() == "corpora") continue;
    ++configs;
    const Experiment experiment = load_experiment(entry.path(), options);
    for (const Run& run : experiment.runs) {
      if (run.seed != experiment.seeds.front()) continue;
      INFO(entry.path().filename().string() << " " << run.name);
      check_run(run);
    }
  }
  CHECK(configs > 0);
}
