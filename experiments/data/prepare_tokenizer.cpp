#include "experiments/data/prepare_tokenizer.hpp"

#include "core/error.hpp"
#include "core/sha256.hpp"
#include "experiments/data/bpe_training.hpp"

#include <fmt/ranges.h>

namespace moelab {
namespace {

constexpr const char* kFile = "tokenizer.jsonl";

std::unique_ptr<const BpeTokenizer> learn(Index vocab_size, const std::vector<DomainFiles>& domains,
                                          double eval_fraction) {
  BpeTraining training;
  for (const DomainFiles& domain : domains) {
    for_each_document(domain, eval_fraction,
                      [&](std::string_view train, std::string_view) { training.add(train); });
  }
  return std::make_unique<BpeTokenizer>(training.merges(vocab_size));
}

}  // namespace

std::unique_ptr<const Tokenizer> prepare_tokenizer(const TokenizerConfig& config,
                                                   const std::vector<DomainFiles>& domains,
                                                   double eval_fraction,
                                                   const std::vector<std::string>& documents_hashes,
                                                   const CacheFolder& cache,
                                                   const std::function<void(const std::string&)>& note) {
  if (config.kind == "byte") return make_byte_tokenizer();
  require(config.kind == "bpe", "[tokenizer] no kind \"{}\": there are byte and bpe", config.kind);
  if (!config.vocab_size) return read_bpe_file(config.file);
  if (!cache.is_used()) return learn(*config.vocab_size, domains, eval_fraction);

  const std::string key = "bpe-" + sha256_hex(fmt::format("bpe 1\n{}\n{}", *config.vocab_size,
                                                          fmt::join(documents_hashes, "\n")));
  const std::filesystem::path file = cache.path_of(key) / kFile;
  if (cache.has(key)) {
    try {
      return read_bpe_file(file);
    } catch (const Error& e) {
      note(fmt::format("{} is damaged and made anew: {}", file.string(), e.what()));
      cache.remove(key);
    }
  }
  cache.add(key, [&](const std::filesystem::path& folder) {
    CacheFolder::write(folder / kFile, learn(*config.vocab_size, domains, eval_fraction)->file_content());
  });
  return read_bpe_file(file);
}

}  // namespace moelab
