// Text as next-token prediction, by domain.
#pragma once

#include "experiments/data/data_config.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/data/domain_tokens.hpp"
#include "experiments/data/make_dataset.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/data/training_order.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

// Every file is a document, or several (`document_bytes`). The last `eval_fraction` of each is held out. The
// two parts of all documents of a domain, in the order of their names, make two streams in which a zero byte
// ends each document. A sequence is a window of seq_len + 1 tokens: inputs are its first seq_len tokens,
// targets its last. Training windows start at multiples of seq_len plus an offset drawn for each epoch;
// held-out windows do not overlap in what they predict.
class TextDataset final : public Dataset {
 public:
  // Reads all files of a resolved config (see resolve_data). Error for a file that is missing or binary, and
  // for a domain too short for one sequence of each kind.
  TextDataset(const TextDataConfig& config, const DataOptions& options);

  const std::vector<std::string>& domains() const override { return names_; }
  Index seq_len() const override { return seq_len_; }
  Index vocab_size() const override { return tokenizer_->vocab_size(); }
  Index token_bytes(std::int32_t id) const override;
  std::string token_text(std::int32_t id) const override;
  Batch train_batch(std::uint64_t seed, std::int64_t first_sequence, Index count) const override;
  std::int64_t num_eval_sequences() const override { return static_cast<std::int64_t>(eval_windows_.size()); }
  Batch eval_batch(std::int64_t first_sequence, Index count) const override;
  std::vector<DomainStatistics> statistics() const override;
  // data.json: what each domain holds; tokenizer.jsonl, where there is one.
  std::vector<std::pair<std::string, std::string>> files() const override;

 private:
  struct EvalWindow {
    Index domain;
    std::int64_t window;
  };

  void load(const TextDataConfig& config, const CacheFolder& cache, const DataOptions& options);
  void check_length(const TokenArray& tokens, std::size_t domain, Index needed, const char* part) const;
  std::vector<EvalWindow> order_eval_windows() const;
  Batch empty_batch(Index count) const;
  void add_window(Batch& batch, Index domain, const TokenArray& tokens, std::int64_t start) const;

  Index seq_len_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::vector<std::string> names_;
  std::vector<DomainTokens> domains_;
  std::unique_ptr<const TrainingOrder> order_;
  std::vector<EvalWindow> eval_windows_;
};

}  // namespace moelab
