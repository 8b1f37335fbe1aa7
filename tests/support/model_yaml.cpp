#include "tests/support/model_yaml.hpp"

#include "core/diagnostics.hpp"
#include "core/fields_reader.hpp"
#include "core/random.hpp"
#include "core/yaml.hpp"

namespace moelab::test {

ModelConfig model_config(const std::string& yaml) {
  Diagnostics diagnostics;
  ModelConfig config;
  const yaml::Node node = yaml::parse(yaml, yaml::make_source("model", yaml), diagnostics);
  read_fields(node, config, diagnostics);
  diagnostics.throw_if_errors();
  return config;
}

Batch token_batch(Index num_sequences, Index seq_len, Index vocab_size) {
  Batch batch;
  batch.num_sequences = num_sequences;
  batch.seq_len = seq_len;
  const random::Stream stream(1, "token batch");
  const auto vocab = static_cast<std::uint64_t>(vocab_size);
  for (Index n = 0; n < batch.size(); ++n) {
    const auto i = static_cast<std::uint64_t>(2 * n);
    batch.inputs.push_back(static_cast<std::int32_t>(stream.below(i, vocab)));
    const bool last = n % seq_len == seq_len - 1;
    batch.targets.push_back(last ? kIgnoredTarget : static_cast<std::int32_t>(stream.below(i + 1, vocab)));
  }
  return batch;
}

}  // namespace moelab::test
