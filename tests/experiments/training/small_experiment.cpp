#include "tests/experiments/training/small_experiment.hpp"

#include "core/error.hpp"
#include "core/random.hpp"
#include "experiments/data/make_dataset.hpp"

#include <fstream>

namespace moelab {

namespace {

// Letters in a loop with some noise, so that there is something to learn; two domains.
void write_corpus(const std::filesystem::path& folder) {
  const random::Stream stream(3, "test corpus");
  for (int d = 0; d < 2; ++d) {
    std::ofstream out(folder / fmt::format("domain{}.txt", d), std::ios::binary);
    for (std::uint64_t i = 0; i < 20000; ++i) {
      const char letter = static_cast<char>((d == 0 ? 'a' : 'n') + i % 11);
      out << (stream.uniform(i) < 0.1 ? static_cast<char>('A' + stream.below(i, 20)) : letter);
    }
  }
}

constexpr const char* kExperiment = R"(
version: 1
name: trainer_test
seeds: [5]
data:
  kind: text
  seq_len: 16
  domains:
    - {name: first, path: domain0.txt}
    - {name: second, path: domain1.txt}
model:
  kind: decoder
  d_model: 16
  num_layers: 2
  num_heads: 2
  dropout: 0.1
  ffn: {kind: dense, activation: swiglu, d_ff: 32}
train:
  max_steps: 12
  batch_tokens: 128
  optimizer: {kind: adamw, lr: 1e-2}
  schedule: {kind: cosine, warmup_tokens: 256}
eval: {every_tokens: 512, max_tokens: 512}
log: {every_steps: 4, routing_every_steps: 4, sample_tokens: 8}
variants:
  dense: {}
  moe:
    model.ffn:
      kind: moe
      experts: {kind: ffn, count: 4, activation: swiglu, d_ff: 16}
      router: {kind: top_k, top_k: 2}
      losses: {load_balance: 0.01, z: 0.001}
)";

}  // namespace

SmallExperiment::SmallExperiment(std::vector<std::string> overrides) {
  write_corpus(folder.path());
  std::ofstream(folder.path() / "test.yaml") << kExperiment;
  LoadOptions options;
  options.overrides = std::move(overrides);
  experiment = load_experiment(folder.path() / "test.yaml", options);
  data = make_dataset(experiment.runs.front().config.data);
}

const Run& SmallExperiment::run(const std::string& variant) const {
  for (const Run& r : experiment.runs) {
    if (r.variant == variant) return r;
  }
  throw Error("no variant " + variant);
}

}  // namespace moelab
