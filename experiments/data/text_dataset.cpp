#include "experiments/data/text_dataset.hpp"

#include "core/error.hpp"
#include "core/json_text.hpp"
#include "experiments/data/prepare_tokenizer.hpp"
#include "experiments/data/shuffle.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace moelab {

TextDataset::TextDataset(const TextDataConfig& config, const DataOptions& options)
    : seq_len_(config.seq_len) {
  require(!config.domains.empty(), "[text] no domains");
  try {
    load(config, CacheFolder(options.cache), options);
  } catch (const CacheError& e) {
    options.note(fmt::format("tokens are kept in memory: the cache {}", e.what()));
    load(config, CacheFolder({}), options);
  }
  std::vector<double> weights;
  std::vector<std::int64_t> num_windows;
  for (std::size_t d = 0; d < domains_.size(); ++d) {
    check_length(domains_[d].train, d, 2 * seq_len_, "training");
    check_length(domains_[d].eval, d, seq_len_ + 1, "held-out");
    weights.push_back(config.domains[d].weight);
    // One less than fit, for the offset of the epoch: seq_len - 1 at most.
    num_windows.push_back(static_cast<std::int64_t>(domains_[d].train.ids().size()) / seq_len_ - 1);
  }
  order_ = std::make_unique<TrainingOrder>(weights, num_windows);
  eval_windows_ = order_eval_windows();
}

void TextDataset::load(const TextDataConfig& config, const CacheFolder& cache, const DataOptions& options) {
  std::vector<DomainFiles> files;
  std::vector<std::string> hashes;
  names_.clear();
  domains_.clear();
  for (const TextDomain& domain : config.domains) {
    names_.push_back(domain.name);
    files.push_back(list_files(domain));
    if (cache.is_used()) hashes.push_back(hash_of_documents(files.back(), config.eval_fraction));
  }
  tokenizer_ = prepare_tokenizer(config.tokenizer, files, config.eval_fraction, hashes, cache, options.note);
  for (std::size_t d = 0; d < files.size(); ++d) {
    domains_.push_back(cache.is_used() ? cached_domain_tokens(files[d], config.eval_fraction, *tokenizer_,
                                                              hashes[d], cache, options.note)
                                       : read_domain_tokens(files[d], config.eval_fraction, *tokenizer_));
  }
}

void TextDataset::check_length(const TokenArray& tokens, std::size_t domain, Index needed,
                               const char* part) const {
  require(static_cast<Index>(tokens.ids().size()) >= needed,
          "[text] domain {} is too short: its {} part has {} tokens, and sequences of {} need {}",
          names_[domain], part, tokens.ids().size(), seq_len_, needed);
}

Index TextDataset::token_bytes(std::int32_t id) const {
  return static_cast<Index>(tokenizer_->bytes_of(id).size());
}

std::string TextDataset::token_text(std::int32_t id) const { return printable(tokenizer_->bytes_of(id)); }

// The domains take turns until each is through. Within a domain the windows are shuffled, always in the same
// way, so that the first few speak for all.
std::vector<TextDataset::EvalWindow> TextDataset::order_eval_windows() const {
  const auto num_windows = [this](const DomainTokens& domain) {
    return (static_cast<std::int64_t>(domain.eval.ids().size()) - 1) / seq_len_;
  };
  std::int64_t most = 0;
  for (const DomainTokens& domain : domains_) most = std::max(most, num_windows(domain));
  std::vector<EvalWindow> windows;
  for (std::int64_t turn = 0; turn < most; ++turn) {
    for (std::size_t d = 0; d < domains_.size(); ++d) {
      const std::int64_t count = num_windows(domains_[d]);
      if (turn >= count) continue;
      windows.push_back({static_cast<Index>(d), Shuffle(count, random::Stream(0, "data/eval"))(turn)});
    }
  }
  return windows;
}

Batch TextDataset::empty_batch(Index count) const {
  Batch batch;
  batch.num_sequences = count;
  batch.seq_len = seq_len_;
  batch.inputs.reserve(batch.size());
  batch.targets.reserve(batch.size());
  batch.domain.reserve(count);
  return batch;
}

void TextDataset::add_window(Batch& batch, Index domain, const TokenArray& tokens, std::int64_t start) const {
  const auto first = tokens.ids().begin() + start;
  batch.inputs.insert(batch.inputs.end(), first, first + seq_len_);
  batch.targets.insert(batch.targets.end(), first + 1, first + seq_len_ + 1);
  batch.domain.push_back(static_cast<std::int32_t>(domain));
}

Batch TextDataset::train_batch(std::uint64_t seed, std::int64_t first_sequence, Index count) const {
  Batch batch = empty_batch(count);
  for (std::int64_t i = first_sequence; i < first_sequence + count; ++i) {
    const TrainingOrder::Place place = order_->at(seed, i);
    const random::Stream offsets(seed, "data/offset", static_cast<std::uint64_t>(place.epoch));
    const auto offset = static_cast<std::int64_t>(
        offsets.below(static_cast<std::uint64_t>(place.domain), static_cast<std::uint64_t>(seq_len_)));
    add_window(batch, place.domain, domains_[place.domain].train, place.window * seq_len_ + offset);
  }
  return batch;
}

Batch TextDataset::eval_batch(std::int64_t first_sequence, Index count) const {
  require(first_sequence >= 0 && first_sequence + count <= num_eval_sequences(),
          "[text] held-out sequences {} to {} of {}", first_sequence, first_sequence + count,
          num_eval_sequences());
  Batch batch = empty_batch(count);
  for (std::int64_t i = first_sequence; i < first_sequence + count; ++i) {
    const EvalWindow& place = eval_windows_[i];
    add_window(batch, place.domain, domains_[place.domain].eval, place.window * seq_len_);
  }
  return batch;
}

std::vector<DomainStatistics> TextDataset::statistics() const {
  std::vector<DomainStatistics> statistics;
  for (std::size_t d = 0; d < domains_.size(); ++d) {
    const DomainTokens& domain = domains_[d];
    statistics.push_back({names_[d], static_cast<std::int64_t>(domain.train.ids().size()),
                          static_cast<std::int64_t>(domain.eval.ids().size()), domain.order0_bits_per_byte});
  }
  return statistics;
}

std::vector<std::pair<std::string, std::string>> TextDataset::files() const {
  using Json = nlohmann::ordered_json;
  const auto part = [](const TokenArray& tokens, std::uint32_t checksum) {
    return Json{{"tokens", tokens.ids().size()}, {"crc32", checksum}};
  };
  Json domains = Json::array();
  for (std::size_t d = 0; d < domains_.size(); ++d) {
    const DomainTokens& domain = domains_[d];
    domains.push_back({{"name", names_[d]},
                       {"train", part(domain.train, domain.train_checksum)},
                       {"eval", part(domain.eval, domain.eval_checksum)}});
  }
  const Json about{{"vocab_size", vocab_size()}, {"domains", std::move(domains)}};
  std::vector<std::pair<std::string, std::string>> files = {{kAboutData, json_text(about, 2) + '\n'}};
  if (const std::string tokenizer = tokenizer_->file_content(); !tokenizer.empty()) {
    files.emplace_back("tokenizer.jsonl", tokenizer);
  }
  return files;
}

}  // namespace moelab
