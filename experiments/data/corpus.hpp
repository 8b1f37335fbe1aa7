// Corpus files, and the way from the paths in a config to files on this machine.
#pragma once

#include "experiments/data/data_config.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

// Reads a corpus file. Its relative paths become absolute: they start at its own folder. Throws ConfigError
// with every error found.
CorpusFile load_corpus(const std::filesystem::path& file);

// Makes a data block independent of the folder that its experiment file lies in: paths become absolute, and
// the domains of a corpus file are listed in place of its name. Throws ConfigError as load_corpus.
void resolve_data(DataConfig& config, const std::filesystem::path& folder);

// A path of a domain that leads to no file.
struct MissingData {
  std::string domain;
  std::string path;
  std::string package;  // that brings it; empty: not known
  std::string message() const;
};

// What of a resolved data block is not there. Looks at names only: no file is opened.
std::vector<MissingData> missing_data(const DataConfig& config);

}  // namespace moelab
