#include "experiments/data/text_dataset.hpp"

#include "core/error.hpp"
#include "experiments/data/make_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace moelab;

namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string text_of(const std::vector<std::int32_t>& ids, Index first, Index count) {
  std::string text;
  for (Index i = first; i < first + count; ++i) text.push_back(static_cast<char>(ids[i]));
  return text;
}

// Two domains whose bytes tell where they stand: 600 different three-byte words in the first, capitals in the
// second.
struct Example {
  TemporaryFolder folder;
  DataConfig config;
  std::string words;
  Example() {
    for (int i = 0; i < 600; ++i) {
      words += {static_cast<char>('a' + i / 100), static_cast<char>('0' + i / 10 % 10),
                static_cast<char>('0' + i % 10)};
    }
    config.text.seq_len = 8;
    config.text.eval_fraction = 0.25;
    config.text.domains = {
        {"words", {folder.write("words.txt", words)}, 3.0, ""},
        {"capitals",
         {folder.write("c/1", repeated("ABC", 40)), folder.write("c/2", repeated("XYZ", 40))},
         1.0,
         ""}};
  }
};

bool same(const Batch& a, const Batch& b) {
  return a.inputs == b.inputs && a.targets == b.targets && a.domain == b.domain;
}

}  // namespace

TEST_CASE("A training sequence is a piece of its domain's training part, and its targets are one token on") {
  const Example example;
  const auto data = make_dataset(example.config);
  CHECK(data->domains() == std::vector<std::string>{"words", "capitals"});
  CHECK(data->vocab_size() == 256);
  CHECK(data->seq_len() == 8);
  CHECK(data->num_features() == 0);
  const std::string train_part = example.words.substr(0, 1350);  // 1800 bytes, a quarter of which is held out
  const Batch batch = data->train_batch(1, 0, 400);
  REQUIRE(batch.size() == 3200);
  REQUIRE(batch.inputs.size() == 3200);
  REQUIRE(batch.targets.size() == 3200);
  std::set<std::size_t> starts;
  int num_words = 0;
  for (Index b = 0; b < 400; ++b) {
    const std::string window = text_of(batch.inputs, b * 8, 8) + text_of(batch.targets, b * 8 + 7, 1);
    CHECK(text_of(batch.targets, b * 8, 8) == window.substr(1));
    if (batch.domain[b] == 0) {
      ++num_words;
      const std::size_t at = (train_part + '\0').find(window);
      REQUIRE(at != std::string::npos);
      starts.insert(at);
    } else {
      CHECK(window.find_first_not_of(std::string("ABCXYZ\0", 7)) == std::string::npos);
    }
  }
  // Three quarters by weight, give or take chance (hypergeometric, standard deviation 6.8).
  CHECK(std::abs(num_words - 300) < 35);
  // An epoch has 167 windows, so some 133 are of the second, which has another offset: hardly any start
  // twice.
  CHECK(starts.size() > 250);
}

TEST_CASE("The training order depends on the seed and the number of the sequence alone") {
  const Example example;
  const auto data = make_dataset(example.config);
  const Batch whole = data->train_batch(3, 1000, 60);
  CHECK(same(whole, data->train_batch(3, 1000, 60)));
  CHECK(same(whole, make_dataset(example.config)->train_batch(3, 1000, 60)));
  CHECK_FALSE(same(whole, data->train_batch(4, 1000, 60)));
  for (Index b = 0; b < 60; ++b) {
    const Batch one = data->train_batch(3, 1000 + b, 1);
    CHECK(text_of(one.inputs, 0, 8) == text_of(whole.inputs, b * 8, 8));
    CHECK(one.domain[0] == whole.domain[b]);
  }
}

TEST_CASE("Held-out text is the end of each document and takes no part in training") {
  const Example example;
  const auto data = make_dataset(example.config);
  // words: 450 held-out bytes and a separator, 56 windows; capitals: 2 x 30 and two separators, 7 windows.
  REQUIRE(data->num_eval_sequences() == 63);
  const Batch batch = data->eval_batch(0, 63);
  const std::string held_out = example.words.substr(1350) + '\0';
  std::map<std::int32_t, std::multiset<std::string>> windows;
  for (Index b = 0; b < 63; ++b) windows[batch.domain[b]].insert(text_of(batch.targets, b * 8, 8));
  std::multiset<std::string> expected;
  for (int w = 0; w < 56; ++w) expected.insert(held_out.substr(w * 8 + 1, 8));
  CHECK(windows[0] == expected);
  CHECK(windows[1].size() == 7);

  const Batch train = data->train_batch(9, 0, 5000);
  for (Index b = 0; b < 5000; ++b) {
    if (train.domain[b] == 0) CHECK(text_of(train.inputs, b * 8, 8) < example.words.substr(1350, 3));
  }
  CHECK_THROWS_AS(data->eval_batch(60, 4), Error);
}

TEST_CASE("The first held-out sequences cover the domains evenly") {
  const Example example;
  const Batch batch = make_dataset(example.config)->eval_batch(0, 20);
  const std::vector<std::int32_t> expected = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0};
  CHECK(batch.domain == expected);
}

TEST_CASE("A held-out part starts with a whole character") {
  const TemporaryFolder folder;
  DataConfig config;
  config.text.seq_len = 4;
  config.text.eval_fraction = 0.5;
  // 101 bytes: the middle falls into the second byte of an e acute.
  config.text.domains = {{"accents", {folder.write("a", "x" + repeated("\xC3\xA9", 50))}, 1.0, ""}};
  const auto data = make_dataset(config);
  const DomainStatistics statistics = data->statistics().at(0);
  CHECK(statistics.train_tokens == 52);  // 51 bytes and a separator
  CHECK(statistics.eval_tokens == 51);
}

TEST_CASE("A long file can be cut into documents, each with a held-out end") {
  const TemporaryFolder folder;
  DataConfig config;
  config.text.seq_len = 4;
  config.text.eval_fraction = 0.2;
  // Ten lines of ten bytes each, the line's number repeated.
  std::string text;
  for (char digit = '0'; digit <= '9'; ++digit) text += std::string(9, digit) + '\n';
  config.text.domains = {{"digits", {folder.write("a", text)}, 1.0, "", 25}};
  // Documents end with the first line that ends at byte 25 or later: 30, 30 and 40 bytes, for the last ten
  // are fewer than half of 25. A fifth of each is held out.
  const auto data = make_dataset(config);
  CHECK(data->statistics()[0].train_tokens == 24 + 24 + 32 + 3);
  CHECK(data->statistics()[0].eval_tokens == 6 + 6 + 8 + 3);
  const Batch batch = data->eval_batch(0, data->num_eval_sequences());
  std::set<std::int32_t> seen(batch.targets.begin(), batch.targets.end());
  CHECK(seen == std::set<std::int32_t>{0, '\n', '2', '5', '9'});
}

TEST_CASE("The order-0 entropy is that of the held-out bytes and the end of their document") {
  const TemporaryFolder folder;
  DataConfig config;
  config.text.seq_len = 2;
  config.text.eval_fraction = 0.5;
  config.text.domains = {{"a", {folder.write("a.txt", "xyzxyzxaaaabbc")}, 1.0, "", {}}};
  // a, b, c and the end: 1/2, 1/4, 1/8, 1/8, so 1.75 bits.
  CHECK(std::abs(make_dataset(config)->statistics()[0].order0_bits_per_byte - 1.75) < 1e-12);
}

TEST_CASE("Text that cannot be trained on is refused with the reason") {
  const TemporaryFolder folder;
  DataConfig config;
  config.text.seq_len = 8;
  const auto error_of = [&](const std::string& path) {
    config.text.domains = {{"it", {path}, 1.0, "some-package"}};
    try {
      make_dataset(config);
      return std::string("no error");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK_THAT(error_of(folder.path() / "none"),
             Contains("none") && Contains("it") && Contains("some-package"));
  CHECK_THAT(error_of(folder.write("binary", std::string("a\0b", 3))),
             Contains("binary") && Contains("not text"));
  CHECK_THAT(error_of(folder.write("empty", "")),
             Contains("it") && Contains("too short") && Contains("0 tokens"));
  CHECK_THAT(error_of(folder.write("short", "0123456789")), Contains("too short") && Contains("16"));
  CHECK_THAT(error_of(folder.write("held", repeated("x", 100))),
             Contains("held-out part has 6 tokens") && Contains("9"));
  // Empty files among others are nothing special.
  folder.write("many/empty", "");
  folder.write("many/full", repeated("x", 1000));
  CHECK(error_of(folder.path() / "many") == "no error");
}

TEST_CASE("A file that several paths of a domain name counts once") {
  Example example;
  const std::string folder = (example.folder.path() / "c").string();
  const auto tokens = [&](std::vector<std::string> paths) {
    example.config.text.domains[1].path = std::move(paths);
    const DomainStatistics capitals = make_dataset(example.config)->statistics()[1];
    return capitals.train_tokens + capitals.eval_tokens;
  };
  const std::int64_t once = tokens({folder});
  CHECK(once >= 240);  // bytes of the two files
  CHECK(tokens({folder + "/*", folder + "/1"}) == once);
  CHECK(tokens({folder + "/1", folder, folder + "/../c/2"}) == once);
}
