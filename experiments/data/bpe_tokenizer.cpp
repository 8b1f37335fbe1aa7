#include "experiments/data/bpe_tokenizer.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json_number.hpp"
#include "core/sha256.hpp"
#include "experiments/data/words.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <unordered_set>

#include <nlohmann/json.hpp>

namespace moelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPart = 1 << 20;  // bytes
constexpr const char* kFormat = "moelab-bpe";

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

// The lines of a tokenizer's file, each parsed, with their numbers in errors.
class Lines {
 public:
  Lines(const std::string& name, std::string_view content) : name_(name), rest_(content) {}

  // Error saying what was to come where the file ends.
  Json next(const char* what) {
    ++number_;
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) stop(fmt::format("the file ends where {} is to come", what));
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    try {
      return Json::parse(line);
    } catch (const Json::parse_error& e) {
      stop(fmt::format("column {}: not JSON", e.byte));
    } catch (const Json::exception& e) {  // a number that is too large for any type
      stop(e.what());
    }
  }
  std::string_view rest() const { return rest_; }

  [[noreturn]] void stop(const std::string& what) const {
    fail("[tokenizer] {}:{}: {}", name_, number_, what);
  }

  template <class T>
  T value(const Json& line, const char* key) const {
    try {
      if constexpr (std::is_integral_v<T>) {
        return whole_number<T>(line.at(key));
      } else {
        return line.at(key).get<T>();
      }
    } catch (const Json::exception&) {
      stop(fmt::format("no `{}` of the right type", key));
    } catch (const Error& e) {
      stop(fmt::format("`{}`: {}", key, e.what()));
    }
  }

 private:
  const std::string& name_;
  std::string_view rest_;
  int number_ = 0;
};

}  // namespace

void join_pairs(std::vector<std::int32_t>& tokens, const BpeMerge& merge, std::int32_t token) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool joins = i + 1 < tokens.size() && tokens[i] == merge.left && tokens[i + 1] == merge.right;
    tokens[kept++] = joins ? token : tokens[i];
    if (joins) ++i;
  }
  tokens.resize(kept);
}

BpeTokenizer::BpeTokenizer(std::vector<BpeMerge> merges) : merges_(std::move(merges)) {
  for (int byte = 0; byte < 256; ++byte) bytes_.emplace_back(1, static_cast<char>(byte));
  for (const BpeMerge& merge : merges_) {
    const auto id = static_cast<std::int32_t>(bytes_.size());
    const auto is_there = [&](std::int32_t token) { return token > kEndOfDocument && token < id; };
    require(is_there(merge.left) && is_there(merge.right),
            "[bpe_tokenizer] token {} cannot be made of {} and {}", id, merge.left, merge.right);
    require(token_of_pair_.emplace(key_of(merge.left, merge.right), id).second,
            "[bpe_tokenizer] the merge of {} and {} stands twice", merge.left, merge.right);
    bytes_.push_back(bytes_[static_cast<std::size_t>(merge.left)] +
                     bytes_[static_cast<std::size_t>(merge.right)]);
  }
}

void BpeTokenizer::encode_word(std::string_view word, std::vector<std::int32_t>& symbols) const {
  symbols.clear();
  for (const char c : word) symbols.push_back(static_cast<unsigned char>(c));
  while (symbols.size() > 1) {
    constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
    std::int32_t earliest = kNone;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto merge = token_of_pair_.find(key_of(symbols[i], symbols[i + 1]));
      if (merge != token_of_pair_.end()) earliest = std::min(earliest, merge->second);
    }
    if (earliest == kNone) return;
    join_pairs(symbols, merges_[static_cast<std::size_t>(earliest - 256)], earliest);
  }
}

std::size_t BpeTokenizer::encode_some(std::string_view text, std::vector<std::int32_t>& ids) const {
  // Words come again and again: each is encoded once.
  struct Place {
    std::size_t begin, end;
  };
  std::unordered_map<std::string_view, Place> known;
  std::vector<std::int32_t> tokens_of_known;
  std::vector<std::int32_t> symbols;
  std::size_t at = 0;
  while (at < text.size() && at < kPart) {
    const std::string_view word = text.substr(at, word_length(text.substr(at)));
    at += word.size();
    const auto [entry, is_new] = known.try_emplace(word);
    if (is_new) {
      encode_word(word, symbols);
      entry->second = {tokens_of_known.size(), tokens_of_known.size() + symbols.size()};
      tokens_of_known.insert(tokens_of_known.end(), symbols.begin(), symbols.end());
    }
    for (std::size_t i = entry->second.begin; i < entry->second.end; ++i) ids.push_back(tokens_of_known[i]);
  }
  return at;
}

std::string_view BpeTokenizer::bytes_of(std::int32_t id) const {
  require(id >= 0 && id < static_cast<std::int32_t>(bytes_.size()),
          "[bpe_tokenizer] there is no token {} of {}", id, bytes_.size());
  return bytes_[static_cast<std::size_t>(id)];
}

std::string BpeTokenizer::file_content() const {
  std::string content = Json{{"format", kFormat}, {"version", 1}, {"vocab_size", vocab_size()}}.dump() + '\n';
  for (std::size_t i = 0; i < merges_.size(); ++i) {
    const std::size_t id = 256 + i;
    content +=
        Json{{"id", id}, {"pair", {merges_[i].left, merges_[i].right}}, {"hex", hex_of(bytes_[id])}}.dump();
    content += '\n';
  }
  return content + Json{{"sha256", sha256_hex(content)}}.dump() + '\n';
}

std::unique_ptr<const BpeTokenizer> parse_bpe_file(const std::string& name, std::string_view content) {
  Lines lines(name, content);
  const Json head = lines.next("the head");
  if (!head.is_object() || head.value("format", Json()) != kFormat || head.value("version", Json()) != 1) {
    lines.stop(fmt::format("not a tokenizer of format {}, version 1", kFormat));
  }
  const auto vocab_size = lines.value<std::int64_t>(head, "vocab_size");
  if (vocab_size < 256 || vocab_size > 65536) {
    lines.stop(fmt::format("vocab_size {} is not between 256 and 65536", vocab_size));
  }
  std::vector<BpeMerge> merges;
  std::unordered_set<std::uint64_t> pairs;
  std::vector<std::string> hexes;
  for (int byte = 0; byte < 256; ++byte) hexes.push_back(fmt::format("{:02x}", byte));
  for (std::int64_t id = 256; id < vocab_size; ++id) {
    const Json line = lines.next("a token");
    if (lines.value<std::int64_t>(line, "id") != id) lines.stop(fmt::format("token {} is to come here", id));
    const auto pair = lines.value<std::vector<Json>>(line, "pair");
    const auto is_there = [&](const Json& token) {
      return token.is_number_integer() && token > kEndOfDocument && token < id;
    };
    if (pair.size() != 2 || !is_there(pair[0]) || !is_there(pair[1])) {
      lines.stop(fmt::format("`pair` of token {} is not two tokens between 1 and {}", id, id - 1));
    }
    const BpeMerge merge{whole_number<std::int32_t>(pair[0]), whole_number<std::int32_t>(pair[1])};
    hexes.push_back(hexes[static_cast<std::size_t>(merge.left)] +
                    hexes[static_cast<std::size_t>(merge.right)]);
    if (lines.value<std::string>(line, "hex") != hexes.back()) {
      lines.stop(fmt::format("`hex` of token {} is not that of its pair, {}", id, hexes.back()));
    }
    if (!pairs.insert(key_of(merge.left, merge.right)).second) {
      lines.stop(fmt::format("the pair of {} and {} stands twice", merge.left, merge.right));
    }
    merges.push_back(merge);
  }
  const std::string_view body = content.substr(0, content.size() - lines.rest().size());
  const Json tail = lines.next("the checksum");
  if (lines.value<std::string>(tail, "sha256") != sha256_hex(body)) lines.stop("the checksum is wrong");
  if (!lines.rest().empty()) lines.stop("the file goes on after its checksum");
  return std::make_unique<BpeTokenizer>(std::move(merges));
}

std::unique_ptr<const BpeTokenizer> read_bpe_file(const std::filesystem::path& file) {
  return parse_bpe_file(file.string(), read_file(file));
}

}  // namespace moelab
