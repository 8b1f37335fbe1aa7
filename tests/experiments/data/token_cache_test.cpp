#include "core/error.hpp"
#include "experiments/data/cache_folder.hpp"
#include "experiments/data/make_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

// Two domains of words that come in no regular order; the documents' ends are held out.
struct Example {
  TemporaryFolder folder;
  DataConfig config;
  std::vector<std::string> notes;
  Example() {
    config.text.seq_len = 8;
    config.text.eval_fraction = 0.25;
    config.text.domains = {
        {"one", {folder.write("one.txt", text(1))}, 3.0, ""},
        {"two", {folder.write("two/a", text(2)), folder.write("two/b", text(3))}, 1.0, ""}};
  }
  static std::string text(unsigned seed) {
    const std::vector<std::string> words = {"expert",     "router",       "token ",
                                            "na\u00efve", "\u4e16\u754c", "the"};
    std::string all;
    for (unsigned i = 0; i < 2000; ++i) {
      seed = seed * 1664525u + 1013904223u;
      all += words[(seed >> 16) % words.size()] + (i % 12 == 11 ? "\n" : " ");
    }
    return all;
  }
  void use_bpe(Index vocab_size) { config.text.tokenizer = {"bpe", vocab_size}; }
  fs::path cache() const { return folder.path() / "cache"; }
  std::unique_ptr<const Dataset> load(const fs::path& cache) {
    return make_dataset(config, {cache, [this](const std::string& text) { notes.push_back(text); }});
  }
  std::set<std::string> entries() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(cache())) names.insert(entry.path().filename());
    return names;
  }
};

bool same(const Dataset& a, const Dataset& b) {
  const auto equal = [](const Batch& x, const Batch& y) {
    return x.inputs == y.inputs && x.targets == y.targets && x.domain == y.domain;
  };
  return a.num_eval_sequences() == b.num_eval_sequences() && a.files() == b.files() &&
         a.statistics()[1].order0_bits_per_byte == b.statistics()[1].order0_bits_per_byte &&
         equal(a.train_batch(5, 100, 3000), b.train_batch(5, 100, 3000)) &&
         equal(a.eval_batch(0, a.num_eval_sequences()), b.eval_batch(0, a.num_eval_sequences()));
}

std::string text_of(const Dataset& data, const Batch& batch) {
  std::string text;
  for (const std::int32_t id : batch.targets) text += data.token_text(id);
  return text;
}

}  // namespace

TEST_CASE("Tokens are the same from memory, from a new cache and from one that is there") {
  Example example;
  for (const bool bpe : {false, true}) {
    if (bpe) example.use_bpe(280);
    const auto in_memory = example.load({});
    CHECK(in_memory->vocab_size() == (bpe ? 280 : 256));
    CHECK(same(*in_memory, *example.load(example.cache())));
    const auto entries = example.entries();
    CHECK(same(*in_memory, *example.load(example.cache())));
    CHECK(example.entries() == entries);
    // One a domain; with bpe two more, and the tokenizer.
    CHECK(entries.size() == (bpe ? 5 : 2));
  }
  CHECK(example.notes.empty());
}

TEST_CASE("What is learnt of the text is learnt of the part that is trained on") {
  Example a;
  Example b;
  a.use_bpe(275);
  b.use_bpe(275);
  const std::string whole = Example::text(1);
  std::string other = whole;
  for (std::size_t i = whole.size() - whole.size() / 5; i < other.size(); ++i) other[i] = 'z';
  b.folder.write("one.txt", other);
  const auto data_a = a.load({});
  const auto data_b = b.load({});
  CHECK(data_a->files()[0] != data_b->files()[0]);  // the held-out tokens
  CHECK(data_a->files()[1].first == "tokenizer.jsonl");
  CHECK(data_a->files()[1] == data_b->files()[1]);
  // Sequences are pieces of the text.
  const std::string seen = text_of(*data_a, data_a->eval_batch(0, 1));
  const std::string first_words = seen.substr(0, seen.find_last_of(' '));
  CHECK((Example::text(1) + Example::text(2) + Example::text(3)).find(first_words) != std::string::npos);
}

TEST_CASE("Tokens know their bytes") {
  Example example;
  example.use_bpe(280);
  const auto data = example.load({});
  // The held-out parts are the last quarters, on whole characters, with a document end each, less what does
  // not fill a sequence: at most 8 tokens a domain, each below 64 bytes.
  std::size_t expected = 3;
  for (const unsigned seed : {1u, 2u, 3u}) expected += (Example::text(seed).size() + 3) / 4;
  std::size_t bytes = 0;
  for (const std::int32_t id : data->eval_batch(0, data->num_eval_sequences()).targets) {
    bytes += static_cast<std::size_t>(data->token_bytes(id));
  }
  CHECK(bytes <= expected);
  CHECK(bytes + 300 > expected);
  CHECK(data->token_bytes(0) == 1);
  CHECK(data->token_text(0) == "\\x00");
  CHECK(data->token_text('\\') == "\\\\");
  CHECK(data->token_text(0xE4) == "\\xe4");
}

TEST_CASE("Another text, tokenizer or split is another entry") {
  Example example;
  example.load(example.cache());
  const auto names = [&] { return example.entries().size(); };
  REQUIRE(names() == 2);
  example.config.text.eval_fraction = 0.3;
  example.load(example.cache());
  CHECK(names() == 4);
  example.config.text.domains[0].document_bytes = 1000;
  example.load(example.cache());
  CHECK(names() == 5);
  example.folder.write("two/b", Example::text(9));
  example.load(example.cache());
  CHECK(names() == 6);
  // The same text elsewhere is not.
  example.config.text.domains[1].path[1] = example.folder.write("three/c", Example::text(9));
  example.config.text.domains[1].name = "renamed";
  example.load(example.cache());
  CHECK(names() == 6);
}

TEST_CASE("A damaged entry is noted and made anew") {
  Example example;
  example.use_bpe(280);
  const auto in_memory = example.load({});
  example.load(example.cache());
  const auto entries = example.entries();
  for (const std::string& name : entries) {
    for (const auto& file : fs::directory_iterator(example.cache() / name)) {
      CAPTURE(file.path());
      example.notes.clear();
      SECTION("cut " + file.path().string().substr(example.cache().string().size())) {
        fs::resize_file(file.path(), fs::file_size(file.path()) / 2);
      }
      SECTION("changed " + file.path().string().substr(example.cache().string().size())) {
        std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(static_cast<std::streamoff>(fs::file_size(file.path()) - 4));
        stream.put('\x15');
      }
      SECTION("gone " + file.path().string().substr(example.cache().string().size())) {
        fs::remove(file.path());
      }
    }
  }
  CHECK(same(*in_memory, *example.load(example.cache())));
  CHECK(example.entries() == entries);
  example.notes.clear();
  CHECK(same(*in_memory, *example.load(example.cache())));
  CHECK(example.notes.empty());
}

TEST_CASE("A cache that cannot be written is noted, and tokens are in memory") {
  Example example;
  const std::string file = example.folder.write("a file", "not a folder");
  const auto data = example.load(fs::path(file) / "cache");
  CHECK(same(*example.load({}), *data));
  REQUIRE(example.notes.size() == 1);
  CHECK_THAT(example.notes[0], Contains("a file") && Contains("memory") && Contains("Not a directory"));
  // An error of the text is told as such.
  example.folder.write("one.txt", std::string(100, '\0'));
  CHECK_THROWS_WITH(example.load(example.cache()), Contains("not text"));
  CHECK(example.entries().empty());
}

TEST_CASE("Several at once make one entry") {
  Example example;
  example.use_bpe(275);
  const auto expected = example.load({});
  std::vector<std::unique_ptr<const Dataset>> loaded(6);
  std::vector<std::thread> threads;
  for (auto& data : loaded) {
    threads.emplace_back([&] { data = make_dataset(example.config, {example.cache()}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& data : loaded) CHECK(same(*expected, *data));
  CHECK(example.entries().size() == 3);
}

TEST_CASE("Where the cache is") {
  const auto folder_with = [](const char* own, const char* xdg, const char* home) {
    setenv("MOELAB_CACHE", own, 1);
    setenv("XDG_CACHE_HOME", xdg, 1);
    setenv("HOME", home, 1);
    return default_cache_folder();
  };
  CHECK(folder_with("/own", "/xdg", "/home/a") == "/own");
  CHECK(folder_with("none", "/xdg", "/home/a").empty());
  CHECK(folder_with("", "/xdg", "/home/a") == "/xdg/moelab");
  CHECK(folder_with("", "relative", "/home/a") == "/home/a/.cache/moelab");
  CHECK(folder_with("", "", "/home/a") == "/home/a/.cache/moelab");
  CHECK(folder_with("", "", "").empty());
}
