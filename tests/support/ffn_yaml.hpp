// FFN blocks from the text of an `ffn:` block, read the way experiment files are.
#pragma once

#include "core/module.hpp"
#include "moe/config.hpp"
#include "moe/make_ffn.hpp"
#include "moe/moe_layer.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace moelab::test {

// ConfigError with all messages when the text is not a valid block.
moe::FfnConfig ffn_config(const std::string& yaml);
// The messages, one a line; empty when the text is valid.
std::string ffn_config_errors(const std::string& yaml);

// A layer with storage for its parameters, initialised from the seed.
struct Ffn {
  Ffn(const std::string& yaml, Index d_model, std::uint64_t seed = 1, moe::FfnShape shape = {});
  moe::FfnOutput forward(const Matrix& x, bool training = true) const;
  moe::FfnOutput forward(const Variable& x, const ForwardContext& context) const;
  moe::MoeLayer& moe() const;
  // The value of a parameter by its path.
  MatrixView weight(const std::string& path) const;
  MatrixView gradient(const std::string& path) const;

  std::unique_ptr<moe::FfnBlock> block;
  std::unique_ptr<ParameterStore> store;
};

// A batch of one sequence per `seq_len` rows (0: one sequence).
moe::TokenBatch batch_of(Index rows, Index seq_len = 0);
ForwardContext training_context();

}  // namespace moelab::test
