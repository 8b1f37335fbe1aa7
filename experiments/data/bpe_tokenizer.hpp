// Byte-level byte-pair encoding (Sennrich et al. 2016; on bytes, Radford et al. 2019).
#pragma once

#include "experiments/data/tokenizer.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace moelab {

// Two tokens that become one. Merge number i makes the token 256 + i; ids below are the bytes.
struct BpeMerge {
  std::int32_t left = 0;
  std::int32_t right = 0;
  bool operator==(const BpeMerge&) const = default;
};

// Makes one `token` of every pair of neighbours that `merge` joins, the leftmost first.
void join_pairs(std::vector<std::int32_t>& tokens, const BpeMerge& merge, std::int32_t token);

// A text is cut into words (see words.hpp). A word begins as its bytes. Of the neighbours in it that some
// merge joins, those of the earliest merge are joined, the leftmost first, until there are none.
class BpeTokenizer final : public Tokenizer {
 public:
  // Error for a merge of tokens that there are not before it, of the zero byte, or that stands twice.
  explicit BpeTokenizer(std::vector<BpeMerge> merges);

  Index vocab_size() const override { return static_cast<Index>(256 + merges_.size()); }
  std::size_t encode_some(std::string_view text, std::vector<std::int32_t>& ids) const override;
  std::string_view bytes_of(std::int32_t id) const override;
  // JSON lines: see docs/data.md.
  std::string file_content() const override;
  const std::vector<BpeMerge>& merges() const { return merges_; }

 private:
  void encode_word(std::string_view word, std::vector<std::int32_t>& symbols) const;

  std::vector<BpeMerge> merges_;
  std::unordered_map<std::uint64_t, std::int32_t> token_of_pair_;
  std::vector<std::string> bytes_;
};

// Reads what file_content() gave. `name` stands in errors, with the number of the line that is wrong.
std::unique_ptr<const BpeTokenizer> parse_bpe_file(const std::string& name, std::string_view content);
std::unique_ptr<const BpeTokenizer> read_bpe_file(const std::filesystem::path& file);

}  // namespace moelab
