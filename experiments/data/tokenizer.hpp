// From bytes to token ids.
#pragma once

#include "core/tensor.hpp"
#include "experiments/data/data_config.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

// Id 0 is the zero byte, which no text holds: it ends a document. It is a token of its own in every
// tokenizer.
inline constexpr std::int32_t kEndOfDocument = 0;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual Index vocab_size() const = 0;
  // Appends the ids of the first part of a text, which is not empty, and returns how many bytes that is: all,
  // or about a megabyte. So a text longer than memory can be encoded.
  virtual std::size_t encode_some(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  // The bytes of a token. Error for an id that there is not.
  virtual std::string_view bytes_of(std::int32_t id) const = 0;
  // What says all about this tokenizer, as its own file holds it; empty where there is nothing to say.
  virtual std::string file_content() const { return {}; }

  // Appends the ids of the text. encode and decode are inverse for any bytes.
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const;
  std::string decode(const std::vector<std::int32_t>& ids) const;
};

// The one whose tokens are the 256 bytes.
std::unique_ptr<const Tokenizer> make_byte_tokenizer();

// Bytes for people, as UTF-8: what is not a printable character as \xNN, a backslash as \\.
std::string printable(std::string_view bytes);

// How many tokens the tokenizer of a resolved config has (see resolve_data), without any text. Error if its
// file cannot be read.
Index vocab_size_of(const TokenizerConfig& config);

}  // namespace moelab
