#include "experiments/data/domain_tokens.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json_text.hpp"
#include "core/sha256.hpp"

#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

namespace moelab {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::span<const std::int32_t>;
using Take = std::function<void(Ids)>;

class ByteCounts {
 public:
  void add(std::string_view text) {
    for (const char c : text) ++counts_[static_cast<unsigned char>(c)];
    total_ += static_cast<std::int64_t>(text.size());
  }
  double entropy() const {
    double entropy = 0;
    for (const std::int64_t count : counts_) {
      const double p = static_cast<double>(count) / static_cast<double>(total_);
      if (count > 0) entropy -= p * std::log2(p);
    }
    return entropy;
  }

 private:
  std::array<std::int64_t, 256> counts_{};
  std::int64_t total_ = 0;
};

// Hands the tokens of both parts on, some at a time. Returns the order-0 entropy.
double encode_domain(const DomainFiles& domain, double eval_fraction, const Tokenizer& tokenizer,
                     const Take& take_train, const Take& take_eval) {
  std::vector<std::int32_t> ids;
  const auto encode = [&](std::string_view text, const Take& take) {
    if (text.empty()) return;
    while (!text.empty()) {
      ids.clear();
      text.remove_prefix(tokenizer.encode_some(text, ids));
      take(ids);
    }
    take(std::array{kEndOfDocument});
  };
  ByteCounts counts;
  for_each_document(domain, eval_fraction, [&](std::string_view train, std::string_view eval) {
    encode(train, take_train);
    encode(eval, take_eval);
    counts.add(eval);
    if (!eval.empty()) counts.add(std::string_view("\0", 1));
  });
  return counts.entropy();
}

// What names a tokenizer: its file, or its kind where it needs none.
std::string key_of(const Tokenizer& tokenizer, const std::string& documents_hash) {
  return "tokens-" + sha256_hex(fmt::format("tokens 1\n{}\n{}", documents_hash, tokenizer.file_content()));
}

void write_entry(const std::filesystem::path& folder, const DomainFiles& domain, double eval_fraction,
                 const Tokenizer& tokenizer) {
  TokenFileWriter train(folder / "train.npy");
  TokenFileWriter eval(folder / "eval.npy");
  const double entropy = encode_domain(
      domain, eval_fraction, tokenizer, [&](Ids ids) { train.append(ids); },
      [&](Ids ids) { eval.append(ids); });
  train.finish();
  eval.finish();
  const auto part = [&](const char* name) {
    const TokenArray tokens(folder / name);
    return Json{{"file", name}, {"tokens", tokens.ids().size()}, {"crc32", tokens.checksum()}};
  };
  const Json about{{"format", "moelab-tokens"},      {"version", 1},
                   {"domain", domain.config.name},   {"vocab_size", tokenizer.vocab_size()},
                   {"train", part("train.npy")},     {"eval", part("eval.npy")},
                   {"order0_bits_per_byte", entropy}};
  CacheFolder::write(folder / "about.json", json_text(about, 2) + '\n');
}

// Error if anything of it is damaged.
DomainTokens read_entry(const std::filesystem::path& folder) {
  try {
    const Json about = Json::parse(read_file(folder / "about.json"));
    // Names of files in it are for people: they could lead elsewhere.
    const auto part = [&](const std::string& name, std::uint32_t& checksum) {
      TokenArray tokens(folder / (name + ".npy"));
      checksum = tokens.checksum();
      // As JSON: another type or a number out of range is unequal.
      require(about.at(name).at("crc32") == Json(checksum), "its {} part has changed", name);
      return tokens;
    };
    DomainTokens tokens;
    tokens.train = part("train", tokens.train_checksum);
    tokens.eval = part("eval", tokens.eval_checksum);
    tokens.order0_bits_per_byte = about.at("order0_bits_per_byte").get<double>();
    require(tokens.order0_bits_per_byte >= 0 && tokens.order0_bits_per_byte <= 8,
            "order0_bits_per_byte={} is not in [0, 8]", tokens.order0_bits_per_byte);
    return tokens;
  } catch (const Json::exception& e) {
    fail("about.json: {}", e.what());
  }
}

}  // namespace

DomainTokens read_domain_tokens(const DomainFiles& domain, double eval_fraction, const Tokenizer& tokenizer) {
  std::vector<std::uint16_t> train;
  std::vector<std::uint16_t> eval;
  const auto into = [](std::vector<std::uint16_t>& tokens) {
    return [&tokens](Ids ids) { tokens.insert(tokens.end(), ids.begin(), ids.end()); };
  };
  DomainTokens tokens;
  tokens.order0_bits_per_byte = encode_domain(domain, eval_fraction, tokenizer, into(train), into(eval));
  tokens.train = TokenArray(std::move(train));
  tokens.eval = TokenArray(std::move(eval));
  tokens.train_checksum = tokens.train.checksum();
  tokens.eval_checksum = tokens.eval.checksum();
  return tokens;
}

DomainTokens cached_domain_tokens(const DomainFiles& domain, double eval_fraction, const Tokenizer& tokenizer,
                                  const std::string& documents_hash, const CacheFolder& cache,
                                  const std::function<void(const std::string&)>& note) {
  const std::string key = key_of(tokenizer, documents_hash);
  if (cache.has(key)) {
    try {
      return read_entry(cache.path_of(key));
    } catch (const Error& e) {
      note(fmt::format("{} is damaged and made anew: {}", cache.path_of(key).string(), e.what()));
      cache.remove(key);
    }
  }
  cache.add(key, [&](const std::filesystem::path& folder) {
    write_entry(folder, domain, eval_fraction, tokenizer);
  });
  return read_entry(cache.path_of(key));
}

}  // namespace moelab
