// What training and evaluation read. A batch is a function of the seed and of its number alone, so a resumed
// run sees the same data, and one loaded data set serves every run of an experiment.
#pragma once

#include "core/tensor.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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

// What is known of a domain before any training.
struct DomainStatistics {
  std::string name;
  std::int64_t train_tokens = 0;  // 0: drawn without end
  std::int64_t eval_tokens = 0;
  // Entropy of single bytes in the held-out part: what a model that knows only the byte frequencies pays.
  // NaN where the data are not text.
  double order0_bits_per_byte = 0;
};

// Of Dataset::files(): what the data are, in numbers and checksums.
inline constexpr const char* kAboutData = "data.json";

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const std::vector<std::string>& domains() const = 0;
  virtual Index seq_len() const = 0;
  virtual Index vocab_size() const { return 0; }    // 0: not token data
  virtual Index num_features() const { return 0; }  // width of features; 0: token data
  virtual Index num_targets() const { return 0; }   // width of regression targets; 0: token data
  virtual Index num_classes() const { return 0; }   // of a sequence; 0: no classification
  // Of a token, to turn nats a token into bits a byte; 1 where data are not text.
  virtual Index token_bytes(std::int32_t /*id*/) const { return 1; }
  // A token for people: what is not printable as \\xNN. Empty where there are none.
  virtual std::string token_text(std::int32_t /*id*/) const { return {}; }

  // Sequences [first, first + count) of the endless training order of this seed.
  virtual Batch train_batch(std::uint64_t seed, std::int64_t first_sequence, Index count) const = 0;
  // The held-out sequences in a fixed order that takes the domains in turn, so that its first n sequences
  // cover them evenly. Never seen in training, the same for every seed.
  virtual std::int64_t num_eval_sequences() const = 0;
  virtual Batch eval_batch(std::int64_t first_sequence, Index count) const = 0;

  virtual std::vector<DomainStatistics> statistics() const = 0;  // one a domain, in the order of domains()

  // Small files that say what the data are, to be kept with results: name and content. Equal for equal data.
  virtual std::vector<std::pair<std::string, std::string>> files() const { return {}; }
};

}  // namespace moelab
