#include "experiments/data/corpus.hpp"

#include "core/diagnostics.hpp"
#include "core/fields_reader.hpp"
#include "core/yaml.hpp"

namespace moelab {
namespace fs = std::filesystem;
namespace {

std::string absolute_path(const fs::path& folder, const std::string& path) {
  return fs::absolute(folder / path).lexically_normal().native();
}

void make_absolute(std::vector<TextDomain>& domains, const fs::path& folder) {
  for (TextDomain& domain : domains) {
    for (std::string& path : domain.path) path = absolute_path(folder, path);
  }
}

}  // namespace

CorpusFile load_corpus(const fs::path& file) {
  const auto source = yaml::read_source(file.native());
  Diagnostics diagnostics;
  const yaml::Node node = yaml::parse(source->text, source, diagnostics);
  CorpusFile corpus;
  read_fields(node, corpus, diagnostics);
  diagnostics.throw_if_errors();
  make_absolute(corpus.domains, file.parent_path());
  return corpus;
}

void resolve_data(DataConfig& config, const fs::path& folder) {
  TextDataConfig& text = config.text;
  if (!text.corpus.empty()) {
    text.domains = load_corpus(absolute_path(folder, text.corpus)).domains;
    text.corpus.clear();
  }
  make_absolute(text.domains, folder);
  std::string& tokenizer = text.tokenizer.file;
  if (!tokenizer.empty()) tokenizer = absolute_path(folder, tokenizer);
}

}  // namespace moelab
