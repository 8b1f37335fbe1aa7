// What training and evaluation read. A batch is a function of its number alone, so a resumed run sees the
// same data.
#pragma once

#include "core/tensor.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace moelab {

inline constexpr std::int32_t kIgnoredTarget = -1;

// B sequences of T positions; row t of sequence b is row b * T + t.
struct Batch {
  Index num_sequences = 0;
  Index seq_len = 0;
  std::vector<std::int32_t> inputs;   // (N) token ids; empty for feature data
  std::vector<std::int32_t> targets;  // (N) token ids or kIgnoredTarget; classification: one a sequence
  std::vector<std::uint8_t> is_real;  // (N) 0 for padding; empty: all real
  Matrix features;                    // (N, d) inputs that are not tokens; empty for tokens
  Matrix regression_targets;          // (N, d_out) for regression
  std::vector<std::int32_t> domain;   // (B) domain of each sequence
  Index size() const { return num_sequences * seq_len; }
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const std::vector<std::string>& domains() const = 0;
  virtual Index seq_len() const = 0;
  virtual Index vocab_size() const { return 0; }        // 0: not token data
  virtual Index num_features() const { return 0; }      // width of features and of regression targets
  virtual double bytes_per_token() const { return 1; }  // to turn nats a token into bits a byte

  // Sequences [first, first + count) of the endless training order, which depends on the seed.
  virtual Batch train_batch(std::int64_t first_sequence, Index count) const = 0;
  // The held-out sequences, in a fixed order, domain by domain in turn; never seen in training.
  virtual std::int64_t num_eval_sequences() const = 0;
  virtual Batch eval_batch(std::int64_t first_sequence, Index count) const = 0;
};

}  // namespace moelab
