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

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual Index vocab_size() const = 0;
  // Appends the ids of the text. encode and decode are inverse for any bytes.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  virtual std::string decode(const std::vector<std::int32_t>& ids) const = 0;
};

// On one line, in ASCII: other bytes and control characters are written as \n, \t or \x80.
std::string visible_text(std::string_view bytes);

std::unique_ptr<const Tokenizer> make_tokenizer(const TokenizerConfig& config);

}  // namespace moelab
