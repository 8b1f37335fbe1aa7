// A domain as tokens.
#pragma once

#include "experiments/data/cache_folder.hpp"
#include "experiments/data/documents.hpp"
#include "experiments/data/token_array.hpp"
#include "experiments/data/tokenizer.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace moelab {

// Both parts of all documents, joined; kEndOfDocument ends each document that is not empty.
struct DomainTokens {
  TokenArray train;
  TokenArray eval;
  std::uint32_t train_checksum = 0;  // see TokenArray
  std::uint32_t eval_checksum = 0;
  double order0_bits_per_byte = 0;  // of the held-out part with its document ends; 0 where it is empty
};

// Reads all documents and keeps their tokens in memory.
DomainTokens read_domain_tokens(const DomainFiles& domain, double eval_fraction, const Tokenizer& tokenizer);

// The same tokens, from the cache; where it has none of these documents, after they were put there. So they
// need no memory. `documents_hash` is that of hash_of_documents. A damaged entry is made anew, which is
// noted. CacheError if the cache cannot be written.
DomainTokens cached_domain_tokens(const DomainFiles& domain, double eval_fraction, const Tokenizer& tokenizer,
                                  const std::string& documents_hash, const CacheFolder& cache,
                                  const std::function<void(const std::string&)>& note);

}  // namespace moelab
