#include "experiments/data/bpe_training.hpp"

#include "core/error.hpp"
#include "experiments/data/words.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

namespace moelab {
namespace {

using Pair = BpeMerge;

struct PairHash {
  std::size_t operator()(const Pair& pair) const {
    const auto both =
        std::uint64_t{static_cast<std::uint32_t>(pair.left)} << 32 | static_cast<std::uint32_t>(pair.right);
    return both * 0x9E3779B97F4A7C15ull >> 16;
  }
};

struct Candidate {
  std::int64_t count;
  Pair pair;
  // Below another that is to be merged before it.
  bool operator<(const Candidate& other) const {
    return std::tuple(count, other.pair.left, other.pair.right) <
           std::tuple(other.count, pair.left, pair.right);
  }
};

struct Word {
  std::vector<std::int32_t> tokens;
  std::int64_t count;
};

// Counts of all pairs, kept up while words change. The queue may hold counts that have fallen since; they are
// put right when they come to its top. Those that rise are pushed anew.
class PairCounts {
 public:
  explicit PairCounts(std::vector<Word> words) : words_(std::move(words)) {
    for (std::size_t w = 0; w < words_.size(); ++w) add_pairs_of(w);
    for (const auto& [pair, entry] : pairs_) queue_.push({entry.count, pair});
  }

  // The next pair to merge; its count is 0 where there is none.
  Candidate best() {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      const std::int64_t count = pairs_[top.pair].count;
      if (top.count == count) return top;
      queue_.pop();
      if (count > 0) queue_.push({count, top.pair});
    }
    return {0, {0, 0}};
  }

  void merge(const Pair& pair, std::int32_t token) {
    std::vector<std::size_t> places = std::move(pairs_[pair].words);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (const std::size_t w : places) {
      remove_pairs_of(w);
      join_pairs(words_[w].tokens, pair, token);
      add_pairs_of(w, token);
    }
    pairs_.erase(pair);
    for (const Pair& risen : risen_) queue_.push({pairs_[risen].count, risen});
    risen_.clear();
  }

 private:
  struct Entry {
    std::int64_t count = 0;
    std::vector<std::size_t> words;  // that may hold it, some more than once
  };

  void remove_pairs_of(std::size_t w) {
    const Word& word = words_[w];
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      pairs_[{word.tokens[i], word.tokens[i + 1]}].count -= word.count;
    }
  }

  void add_pairs_of(std::size_t w) {
    const Word& word = words_[w];
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      Entry& entry = pairs_[{word.tokens[i], word.tokens[i + 1]}];
      entry.count += word.count;
      if (entry.words.empty() || entry.words.back() != w) entry.words.push_back(w);
    }
  }

  // Of a word that is known, in which `token` is new: only pairs with it are more than before.
  void add_pairs_of(std::size_t w, std::int32_t token) {
    const Word& word = words_[w];
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      const Pair pair{word.tokens[i], word.tokens[i + 1]};
      Entry& entry = pairs_[pair];
      entry.count += word.count;
      if (pair.left != token && pair.right != token) continue;
      if (entry.words.empty()) risen_.push_back(pair);
      if (entry.words.empty() || entry.words.back() != w) entry.words.push_back(w);
    }
  }

  std::vector<Word> words_;
  std::unordered_map<Pair, Entry, PairHash> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> risen_;
};

}  // namespace

void BpeTraining::add(std::string_view text) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, word_length(text));
    text.remove_prefix(word.size());
    const auto known = words_.find(word);
    if (known != words_.end()) {
      ++known->second;
    } else {
      words_.emplace(word, 1);
    }
  }
}

std::vector<BpeMerge> BpeTraining::merges(Index vocab_size) const {
  require(vocab_size >= 256, "[bpe_training] vocab_size={} is less than the 256 bytes", vocab_size);
  std::vector<Word> words;
  for (const auto& [text, count] : words_) {
    Word& word = words.emplace_back(Word{{}, count});
    for (const char c : text) word.tokens.push_back(static_cast<unsigned char>(c));
  }
  PairCounts counts(std::move(words));
  std::vector<BpeMerge> merges;
  for (auto token = std::int32_t{256}; token < vocab_size; ++token) {
    const Candidate best = counts.best();
    require(best.count >= 2,
            "[bpe_training] the text has pairs that occur twice for {} tokens only, not for "
            "vocab_size={}",
            token, vocab_size);
    counts.merge(best.pair, token);
    merges.push_back(best.pair);
  }
  return merges;
}

}  // namespace moelab
