// Models from the text of a `model:` block, read the way experiment files are.
#pragma once

#include "experiments/models/make_model.hpp"

#include <memory>
#include <string>

namespace moelab::test {

// ConfigError with all messages when the text is not a valid block.
ModelConfig model_config(const std::string& yaml);

// Token batches of `num_sequences` with ids and targets that look random; the last target of each sequence is
// ignored.
Batch token_batch(Index num_sequences, Index seq_len, Index vocab_size);

}  // namespace moelab::test
