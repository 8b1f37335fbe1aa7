// The tokenizer of an experiment: known beforehand, or learnt from its text.
#pragma once

#include "experiments/data/cache_folder.hpp"
#include "experiments/data/documents.hpp"
#include "experiments/data/tokenizer.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace moelab {

// One that is learnt sees what is trained on of all domains, each byte once whatever the weights are. With a
// cache it is kept there; documents_hashes then are those of hash_of_documents, one a domain. CacheError if
// the cache cannot be written.
std::unique_ptr<const Tokenizer> prepare_tokenizer(const TokenizerConfig& config,
                                                   const std::vector<DomainFiles>& domains,
                                                   double eval_fraction,
                                                   const std::vector<std::string>& documents_hashes,
                                                   const CacheFolder& cache,
                                                   const std::function<void(const std::string&)>& note);

}  // namespace moelab
