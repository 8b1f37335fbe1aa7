// Learns the merges of a byte-pair encoding from text.
#pragma once

#include "experiments/data/bpe_tokenizer.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace moelab {

// Each step merges the pair of neighbouring tokens that occurs most often within words, wherever it does; a
// pair is counted at every place, also where two places overlap. Of pairs that occur equally often, the one
// whose left token has the lowest id is taken, then the one with the lowest right token. So the merges are a
// function of how often each word occurs, and of nothing else.
//
// Memory goes with the number of different words.
class BpeTraining {
 public:
  // Counts the words of a document.
  void add(std::string_view text);
  // Error below 256, and where the text has too few pairs that occur twice.
  std::vector<BpeMerge> merges(Index vocab_size) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> words_;
};

}  // namespace moelab
