// Corpus files: domains of text that many experiments use.
#pragma once

#include "experiments/data/data_config.hpp"

#include <filesystem>

namespace moelab {

// Reads a corpus file. Its relative paths become absolute: they start at its own folder. Throws ConfigError
// with every error found, and Error if the file cannot be read.
CorpusFile load_corpus(const std::filesystem::path& file);

// Makes a data block independent of the folder that its experiment file lies in: paths become absolute, and
// the domains of a corpus file are listed in place of its name. Throws as load_corpus.
void resolve_data(DataConfig& config, const std::filesystem::path& folder);

}  // namespace moelab
