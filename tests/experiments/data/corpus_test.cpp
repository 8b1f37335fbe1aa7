#include "experiments/data/corpus.hpp"

#include "core/diagnostics.hpp"
#include "core/error.hpp"
#include "core/fields_reader.hpp"
#include "core/fields_writer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <filesystem>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

DataConfig read(const std::string& text) {
  const auto source = yaml::make_source("test.yaml", text);
  Diagnostics diagnostics;
  DataConfig config;
  read_fields(yaml::parse(source->text, source, diagnostics), config, diagnostics);
  diagnostics.throw_if_errors();
  return config;
}

std::string error_of(const std::string& text) {
  try {
    read(text);
    return "no error";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("A corpus file lists domains, relative to its own folder") {
  const TemporaryFolder folder;
  const std::string file = folder.write("corpora/mine.yaml",
                                        "version: 1\n"
                                        "name: mine\n"
                                        "domains:\n"
                                        "  - {name: notes, path: ../notes/*.txt, package: my-notes}\n"
                                        "  - {name: code, path: [/opt/a, /opt/b], weight: 2}\n");
  const CorpusFile corpus = load_corpus(file);
  CHECK(corpus.name == "mine");
  REQUIRE(corpus.domains.size() == 2);
  CHECK(corpus.domains[0].path == std::vector<std::string>{folder.path() / "notes/*.txt"});
  CHECK(corpus.domains[0].package == "my-notes");
  CHECK(corpus.domains[0].weight == 1.0);
  CHECK(corpus.domains[1].path == std::vector<std::string>{"/opt/a", "/opt/b"});
  CHECK(corpus.domains[1].weight == 2.0);

  DataConfig config = read("{kind: text, corpus: corpora/mine.yaml}");
  resolve_data(config, folder.path());
  CHECK(config.text.corpus.empty());
  REQUIRE(config.text.domains.size() == 2);
  CHECK(config.text.domains[0].path == corpus.domains[0].path);
  // What was resolved does not depend on a folder any more.
  resolve_data(config, "/elsewhere");
  CHECK(config.text.domains[0].path == corpus.domains[0].path);
}

TEST_CASE("Paths of an experiment start at its folder, from wherever it is called") {
  DataConfig config = read("{kind: text, domains: [{name: a, path: [texts/a.txt, /b.txt]}]}");
  resolve_data(config, "some/folder");
  CHECK(config.text.domains[0].path ==
        std::vector<std::string>{fs::current_path() / "some/folder/texts/a.txt", "/b.txt"});
}

TEST_CASE("All mistakes of a corpus file are told at once") {
  const TemporaryFolder folder;
  const std::string file = folder.write("mine.yaml",
                                        "version: 2\n"
                                        "name: mine\n"
                                        "domains:\n"
                                        "  - {name: notes, paht: a.txt}\n"
                                        "  - {name: code, path: b.txt, weight: 0}\n");
  try {
    load_corpus(file);
    FAIL("no error");
  } catch (const ConfigError& error) {
    CHECK_THAT(error.what(), Contains("mine.yaml:1:") && Contains("mine.yaml:4:") && Contains("paht") &&
                                 Contains("mine.yaml:5:") && Contains("weight"));
  }
  CHECK_THROWS_WITH(load_corpus(folder.path() / "none.yaml"), Contains("none.yaml"));
}

TEST_CASE("Every corpus file of the project is right and names the package of each domain") {
  int num_files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(MOELAB_SOURCE_DIR) / "configs" / "corpora")) {
    CAPTURE(entry.path());
    const CorpusFile corpus = load_corpus(entry.path());
    CHECK(corpus.name == entry.path().stem());
    CHECK_FALSE(corpus.description.empty());
    for (const TextDomain& domain : corpus.domains) {
      CAPTURE(domain.name);
      CHECK_FALSE(domain.package.empty());
      for (const std::string& path : domain.path) CHECK(fs::path(path).is_absolute());
    }
    ++num_files;
  }
  CHECK(num_files >= 3);
}

TEST_CASE("Mistakes in a data block") {
  CHECK(error_of("{kind: text, corpus: a.yaml}") == "no error");
  CHECK_THAT(error_of("{kind: text}"), Contains("domains"));
  CHECK_THAT(error_of("{kind: text, corpus: a.yaml, domains: [{name: a, path: b}]}"),
             Contains("one of the two"));
  CHECK_THAT(error_of("{kind: text, domains: [{name: a, path: b}, {name: a, path: c}]}"),
             Contains("same name"));
  CHECK_THAT(error_of("{kind: text, domains: [{name: a/b, path: b}]}"), Contains("slash"));
  CHECK_THAT(error_of("{kind: text, domains: [{name: a, path: []}]}"), Contains("path"));
  CHECK_THAT(error_of("{kind: text, domains: [{path: b}]}"), Contains("name"));
  CHECK_THAT(error_of("{kind: text, corpus: a.yaml, eval_fraction: 0}"), Contains("eval_fraction"));
  CHECK_THAT(error_of("{kind: text, corpus: a.yaml, seq_len: 0}"), Contains("seq_len"));
  CHECK_THAT(error_of("{kind: text, corpus: a.yaml, tokenizer: words}"),
             Contains("tokenizer") && Contains("byte"));
  CHECK_THAT(error_of("{kind: text, corpus: a.yaml, num_clusters: 3}"), Contains("num_clusters"));
  CHECK_THAT(error_of("{kind: synthetic, map: cubic}"), Contains("cubic") && Contains("tanh"));
  CHECK_THAT(error_of("{kind: pictures}"), Contains("images") && Contains("synthetic"));
}
