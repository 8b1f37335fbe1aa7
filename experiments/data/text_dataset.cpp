#include "experiments/data/text_dataset.hpp"

#include "core/error.hpp"
#include "experiments/data/missing_data.hpp"
#include "experiments/data/shuffle.hpp"
#include "experiments/data/text_files.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace moelab {
namespace {

// No text holds it, so it tells documents apart.
constexpr char kEndOfDocument = '\0';

// Bytes before the held-out part; never inside a UTF-8 character.
std::size_t split_point(std::string_view text, double eval_fraction) {
  auto split = static_cast<std::size_t>(static_cast<double>(text.size()) * (1 - eval_fraction));
  while (split < text.size() && (static_cast<unsigned char>(text[split]) & 0xC0) == 0x80) ++split;
  return split;
}

// Cuts a file at ends of lines into pieces of `length` bytes or a little more; the last has half of that at
// least.
std::vector<std::string_view> cut_into_documents(std::string_view file, std::optional<Index> length) {
  std::vector<std::string_view> documents;
  while (length && file.size() > static_cast<std::size_t>(*length)) {
    const std::size_t end = file.find('\n', static_cast<std::size_t>(*length) - 1);
    if (end == std::string_view::npos || file.size() - end - 1 < static_cast<std::size_t>(*length) / 2) break;
    documents.push_back(file.substr(0, end + 1));
    file.remove_prefix(end + 1);
  }
  documents.push_back(file);
  return documents;
}

void append_document(std::string& stream, std::string_view document) {
  if (document.empty()) return;
  stream += document;
  stream += kEndOfDocument;
}

}  // namespace

double order0_entropy(std::string_view text) {
  std::array<double, 256> counts{};
  for (const char c : text) ++counts[static_cast<unsigned char>(c)];
  double entropy = 0;
  for (const double count : counts) {
    const double p = count / static_cast<double>(text.size());
    if (count > 0) entropy -= p * std::log2(p);
  }
  return entropy;
}

TextDataset::TextDataset(const TextDataConfig& config)
    : seq_len_(config.seq_len),
      eval_fraction_(config.eval_fraction),
      tokenizer_(make_tokenizer(config.tokenizer)) {
  require(!config.domains.empty(), "[text] no domains");
  require(tokenizer_->vocab_size() <= 1 << 16, "[text] vocab_size={} exceeds 65536",
          tokenizer_->vocab_size());
  std::vector<double> weights;
  std::vector<std::int64_t> num_windows;
  for (const TextDomain& domain : config.domains) {
    domains_.push_back(read_domain(domain));
    names_.push_back(domain.name);
    weights.push_back(domain.weight);
    // One less than fit, for the offset of the epoch: seq_len - 1 at most.
    num_windows.push_back(static_cast<std::int64_t>(domains_.back().train.size()) / seq_len_ - 1);
  }
  order_ = std::make_unique<TrainingOrder>(weights, num_windows);
  eval_windows_ = order_eval_windows();
}

TextDataset::Domain TextDataset::read_domain(const TextDomain& config) const {
  std::string train;
  std::string eval;
  for (const std::string& path : config.path) {
    const std::vector<std::string> files = find_files(path);
    if (files.empty()) throw Error(MissingData{config.name, path, config.package}.message());
    for (const std::string& file : files) {
      const std::string text = read_text_file(file);
      require(text.find('\0') == std::string::npos,
              "[text] {} (domain {}) is not text: it holds a zero byte. A glob such as /folder/**/*.txt "
              "picks files",
              file, config.name);
      for (const std::string_view document : cut_into_documents(text, config.document_bytes)) {
        const std::size_t split = split_point(document, eval_fraction_);
        append_document(train, document.substr(0, split));
        append_document(eval, document.substr(split));
      }
    }
  }
  const auto tokens_of = [this](const std::string& text) {
    std::vector<std::int32_t> ids;
    tokenizer_->encode(text, ids);
    return Tokens(ids.begin(), ids.end());
  };
  Domain domain{tokens_of(train), tokens_of(eval), order0_entropy(eval)};
  const auto check_length = [&](const Tokens& tokens, Index needed, const char* part) {
    require(static_cast<Index>(tokens.size()) >= needed,
            "[text] domain {} is too short: its {} part has {} tokens, and sequences of {} need {}",
            config.name, part, tokens.size(), seq_len_, needed);
  };
  check_length(domain.train, 2 * seq_len_, "training");
  check_length(domain.eval, seq_len_ + 1, "held-out");
  return domain;
}

// The domains take turns until each is through. Within a domain the windows are shuffled, always in the same
// way, so that the first few speak for all.
std::vector<TextDataset::EvalWindow> TextDataset::order_eval_windows() const {
  const auto num_windows = [this](const Domain& domain) {
    return (static_cast<std::int64_t>(domain.eval.size()) - 1) / seq_len_;
  };
  std::int64_t most = 0;
  for (const Domain& domain : domains_) most = std::max(most, num_windows(domain));
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

void TextDataset::add_window(Batch& batch, Index domain, const Tokens& tokens, std::int64_t start) const {
  const auto first = tokens.begin() + start;
  batch.inputs.insert(batch.inputs.end(), first, first + seq_len_);
  batch.targets.insert(batch.targets.end(), first + 1, first + seq_len_ + 1);
  batch.domain.push_back(static_cast<std::int32_t>(domain));
}

std::string TextDataset::token_text(std::int32_t id) const { return visible_text(tokenizer_->decode({id})); }

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
    const Domain& domain = domains_[d];
    statistics.push_back({names_[d], static_cast<std::int64_t>(domain.train.size()),
                          static_cast<std::int64_t>(domain.eval.size()), domain.order0_bits_per_byte});
  }
  return statistics;
}

}  // namespace moelab
