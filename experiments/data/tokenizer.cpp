#include "experiments/data/tokenizer.hpp"

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "experiments/data/bpe_tokenizer.hpp"

#include <algorithm>
#include <array>

namespace moelab {
namespace {

constexpr std::size_t kPart = 1 << 20;  // bytes

constexpr std::array<char, 256> kBytes = [] {
  std::array<char, 256> bytes{};
  for (int i = 0; i < 256; ++i) bytes[static_cast<std::size_t>(i)] = static_cast<char>(i);
  return bytes;
}();

// The ids are the bytes.
class ByteTokenizer final : public Tokenizer {
 public:
  Index vocab_size() const override { return 256; }
  std::size_t encode_some(std::string_view text, std::vector<std::int32_t>& ids) const override {
    const std::string_view part = text.substr(0, kPart);
    for (const char c : part) ids.push_back(static_cast<unsigned char>(c));
    return part.size();
  }
  std::string_view bytes_of(std::int32_t id) const override {
    require(id >= 0 && id < 256, "[byte_tokenizer] id {} is not a byte", id);
    return {&kBytes[static_cast<std::size_t>(id)], 1};
  }
};

}  // namespace

void Tokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  while (!text.empty()) text.remove_prefix(encode_some(text, ids));
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& ids) const {
  std::string text;
  for (const std::int32_t id : ids) text += bytes_of(id);
  return text;
}

std::unique_ptr<const Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::string printable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t length = utf8::first_character(bytes).length;
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (length > 1 || (length == 1 && first >= 0x20 && first != 0x7F && first != '\\')) {
      text += bytes.substr(0, length);
    } else {
      text += first == '\\' ? "\\\\" : fmt::format("\\x{:02x}", first);
    }
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

Index vocab_size_of(const TokenizerConfig& config) {
  if (config.kind == "byte") return 256;
  require(config.kind == "bpe", "[tokenizer] no kind \"{}\": there are byte and bpe", config.kind);
  if (config.vocab_size) return *config.vocab_size;
  return read_bpe_file(config.file)->vocab_size();
}

}  // namespace moelab
