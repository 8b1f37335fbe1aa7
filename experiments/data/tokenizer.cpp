#include "experiments/data/tokenizer.hpp"

#include "core/error.hpp"

namespace moelab {
namespace {

// The ids are the bytes.
class ByteTokenizer final : public Tokenizer {
 public:
  Index vocab_size() const override { return 256; }
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override {
    ids.reserve(ids.size() + text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(const std::vector<std::int32_t>& ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      require(id >= 0 && id < 256, "[byte_tokenizer] id {} is not a byte", id);
      text.push_back(static_cast<char>(id));
    }
    return text;
  }
};

}  // namespace

std::string visible_text(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else if (c < 0x20 || c > 0x7e) {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text;
}

std::unique_ptr<const Tokenizer> make_tokenizer(const TokenizerConfig& config) {
  if (config.kind == "byte") return std::make_unique<ByteTokenizer>();
  fail("[tokenizer] no kind \"{}\": there is byte", config.kind);
}

}  // namespace moelab
