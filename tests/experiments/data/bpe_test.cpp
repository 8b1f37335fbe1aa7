#include "core/error.hpp"
#include "core/random.hpp"
#include "experiments/data/bpe_training.hpp"
#include "experiments/data/words.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <map>

using namespace moelab;

namespace {

using Ids = std::vector<std::int32_t>;
using Merges = std::vector<BpeMerge>;

Merges learn(const std::string& text, Index vocab_size) {
  BpeTraining training;
  training.add(text);
  return training.merges(vocab_size);
}

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    words.emplace_back(text.substr(0, word_length(text)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

Ids joined(const Ids& word, const BpeMerge& merge, std::int32_t token) {
  Ids out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (i + 1 < word.size() && word[i] == merge.left && word[i + 1] == merge.right) {
      out.push_back(token);
      ++i;
    } else {
      out.push_back(word[i]);
    }
  }
  return out;
}

Ids bytes_of(const std::string& word) {
  Ids ids;
  for (const char c : word) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

// Counts every pair of the whole text anew for each merge.
Merges learn_plainly(const std::string& text, Index vocab_size) {
  std::vector<Ids> words;
  for (const std::string& word : words_of(text)) words.push_back(bytes_of(word));
  Merges merges;
  for (std::int32_t token = 256; token < vocab_size; ++token) {
    std::map<std::pair<std::int32_t, std::int32_t>, int> counts;
    for (const Ids& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    auto best = counts.begin();
    for (auto it = counts.begin(); it != counts.end(); ++it) {
      if (it->second > best->second) best = it;
    }
    merges.push_back({best->first.first, best->first.second});
    for (Ids& word : words) word = joined(word, merges.back(), token);
  }
  return merges;
}

std::string random_text(std::uint64_t seed, std::size_t length, const std::string& alphabet) {
  const random::Stream stream(seed, "test/text");
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += alphabet[stream.below(i, alphabet.size())];
  return text;
}

// Several scripts, an emoji with joiners, and bytes that are no UTF-8.
const std::string kScripts =
    "The quick brown fox; na\u00efve caf\u00e9, stra\u00dfe 1234567. "
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 "
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u3053\u3093\u306b\u3061\u306f "
    "\u041f\u0440\u0438\u0432\u0435\u0442 \u0928\u092e\u0938\u094d\u0924\u0947 "
    "\U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F600\t\r\n  x\n\n  y \xFF\xFE\xC0\xAF\xED\xA0\x80 "
    "\xF0\x9F";

}  // namespace

TEST_CASE("Merges of a text that was worked out by hand") {
  // a a a b d a a a b a c: aa occurs 4 times. Then Z a b d Z a b a c: Za and ab occur twice each, and a is
  // the lower left token. Then Z Y d Z Y a c: ZY occurs twice. Then all pairs occur once.
  const std::string text = "aaabdaaabac";
  const Merges expected = {{'a', 'a'}, {'a', 'b'}, {256, 257}};
  CHECK(learn(text, 259) == expected);
  const BpeTokenizer tokenizer(expected);
  CHECK(tokenizer.vocab_size() == 259);
  CHECK(encode(tokenizer, text) == Ids{258, 'd', 258, 'a', 'c'});
  CHECK(tokenizer.bytes_of(258) == "aaab");
  CHECK_THROWS_WITH(learn(text, 260), Contains("259 tokens only") && Contains("vocab_size=260"));
  CHECK(learn(text, 256).empty());
  CHECK_THROWS_WITH(learn(text, 255), Contains("vocab_size=255"));
}

TEST_CASE("The earliest merge comes first, wherever it is in the word") {
  // bc before ab: abc is a + bc, though ab stands first.
  const BpeTokenizer tokenizer({{'b', 'c'}, {'a', 'b'}, {'a', 256}});
  CHECK(encode(tokenizer, "ab") == Ids{257});
  CHECK(encode(tokenizer, "abc") == Ids{258});
  CHECK(encode(tokenizer, "abab") == Ids{257, 257});
  const BpeTokenizer leftmost({{'a', 'a'}});
  CHECK(encode(leftmost, "aaa") == Ids{256, 'a'});
}

TEST_CASE("Merges stay within words") {
  CHECK(words_of("Hello, wor1d  two\n\n  x") ==
        std::vector<std::string>{"Hello", ",", " wor", "1", "d", " ", " two", "\n\n ", " x"});
  CHECK(words_of(" a ") == std::vector<std::string>{" a", " "});
  CHECK(words_of(std::string("a\0\0 b", 5)) ==
        std::vector<std::string>{"a", std::string(1, '\0'), std::string(1, '\0'), " b"});
  CHECK(words_of(" \n b") == std::vector<std::string>{" \n", " b"});
  CHECK(word_length("") == 0);
  // A long run is cut where a character ends: 64 bytes are 21 of three bytes and one more byte.
  std::string long_run;
  for (int i = 0; i < 50; ++i) long_run += "\u4e16";
  for (const std::string& word : words_of(long_run)) CHECK(word.size() % 3 == 0);
  CHECK(words_of(long_run).front().size() == 63);
  CHECK(words_of(std::string(200, '\x80')).front().size() == kLongestWord);
  CHECK(words_of(std::string(200, ' ')).front().size() == kLongestWord);
}

TEST_CASE("Learning counts as if it counted everything anew") {
  for (const std::string alphabet : {"ab", "abc d", "ab1 ,\n", "a"}) {
    CAPTURE(alphabet);
    const Index vocab_size = alphabet == "a" ? 262 : 280;  // a word of 64 is halved six times
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const std::string text = random_text(seed, 3000, alphabet);
      CHECK(learn(text, vocab_size) == learn_plainly(text, vocab_size));
    }
  }
}

TEST_CASE("Encoding is the merges replayed in their order") {
  const std::string text = random_text(7, 4000, "abcd ");
  const Merges merges = learn(text, 320);
  const BpeTokenizer tokenizer(merges);
  const std::string other = random_text(8, 500, "abcd e");
  Ids expected;
  for (const std::string& word : words_of(other)) {
    Ids ids = bytes_of(word);
    for (std::size_t m = 0; m < merges.size(); ++m)
      ids = joined(ids, merges[m], static_cast<std::int32_t>(256 + m));
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  CHECK(encode(tokenizer, other) == expected);
}

TEST_CASE("Byte pairs give back any bytes") {
  std::string text = random_text(1, 20000, "the cat sat on a mat. ");
  for (int i = 0; i < 30; ++i) text += kScripts;
  const BpeTokenizer tokenizer(learn(text, 400));
  const auto check = [&](const std::string& bytes) {
    const Ids ids = encode(tokenizer, bytes);
    if (tokenizer.decode(ids) != bytes) return false;
    return std::all_of(ids.begin(), ids.end(), [](std::int32_t id) { return id >= 0 && id < 400; });
  };
  CHECK(check(""));
  bool all = true;
  for (int a = 0; a < 256; ++a) {
    all = all && check(std::string(1, static_cast<char>(a)));
    for (int b = 0; b < 256; ++b) all = all && check({static_cast<char>(a), static_cast<char>(b)});
  }
  CHECK(all);
  CHECK(check(kScripts));
  CHECK(encode(tokenizer, kScripts).size() < kScripts.size() / 2);
  std::string every_byte;
  for (int a = 0; a < 256; ++a) every_byte += static_cast<char>(a);
  for (std::uint64_t seed = 0; seed < 50; ++seed) CHECK(check(random_text(seed, 1000, every_byte)));
  // A text of more than one part gives what its words give.
  std::string large;
  while (large.size() < (5u << 20) / 2) large += text;
  Ids by_word;
  for (const std::string& word : words_of(large)) tokenizer.encode(word, by_word);
  CHECK(encode(tokenizer, large) == by_word);
}

TEST_CASE("A tokenizer's file is read back, and one that is damaged is refused with the place") {
  const BpeTokenizer tokenizer(learn("aaabdaaabac", 259));
  const std::string content = tokenizer.file_content();
  CHECK(parse_bpe_file("t.jsonl", content)->merges() == tokenizer.merges());
  CHECK(parse_bpe_file("t.jsonl", BpeTokenizer({}).file_content())->vocab_size() == 256);

  const auto error_of = [](const std::string& damaged) {
    try {
      parse_bpe_file("t.jsonl", damaged);
      return std::string("no error");
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = content;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  CHECK_THAT(error_of(""), Contains("t.jsonl:1: ") && Contains("ends"));
  CHECK_THAT(error_of("{}\n"), Contains("t.jsonl:1: ") && Contains("format"));
  CHECK_THAT(error_of(replaced("\"version\":1", "\"version\":2")), Contains("t.jsonl:1: "));
  for (const char* number : {"1e999", "25999999999999999999", "259.5", "-1", "null"})
    CHECK_THAT(error_of(replaced("\"vocab_size\":259", fmt::format("\"vocab_size\":{}", number))),
               Contains("t.jsonl:1: "));
  CHECK_THAT(error_of(replaced("\"id\":256", "\"id\":1e999")), Contains("t.jsonl:2: "));
  CHECK_THAT(error_of(replaced("\"vocab_size\":259", "\"vocab_size\":255")),
             Contains("t.jsonl:1: ") && Contains("255"));
  CHECK_THAT(error_of(replaced("\"vocab_size\":259", "\"vocab_size\":300")), Contains("t.jsonl:5: "));
  CHECK_THAT(error_of(replaced("\"id\":257", "\"id\":258")), Contains("t.jsonl:3: ") && Contains("257"));
  CHECK_THAT(error_of(replaced("[97,98]", "[97,257]")), Contains("t.jsonl:3: ") && Contains("pair"));
  CHECK_THAT(error_of(replaced("[97,98]", "[0,98]")), Contains("t.jsonl:3: ") && Contains("pair"));
  CHECK_THAT(error_of(replaced("[97,98]", "[97]")), Contains("t.jsonl:3: "));
  CHECK_THAT(error_of(replaced("[97,98]", "\"ab\"")), Contains("t.jsonl:3: ") && Contains("`pair`"));
  CHECK_THAT(error_of(replaced("[97,98]", "[97,99]")), Contains("t.jsonl:3: ") && Contains("hex"));
  CHECK_THAT(error_of(replaced("{\"id\":258", "{id:258")), Contains("t.jsonl:4: column 2"));
  // A cut anywhere, and any byte changed, are noticed.
  for (std::size_t length = 0; length < content.size(); ++length) {
    CHECK_THAT(error_of(content.substr(0, length)), Contains("t.jsonl:"));
  }
  for (std::size_t at = 0; at < content.size(); ++at) {
    std::string damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    CHECK_THAT(error_of(damaged), Contains("t.jsonl:"));
  }
  CHECK_THAT(error_of(content + "{}\n"), Contains("goes on"));
  CHECK_THROWS_WITH(BpeTokenizer({{'a', 'b'}, {'a', 'b'}}), Contains("twice"));
  CHECK_THROWS_WITH(BpeTokenizer({{'a', 256}}), Contains("256"));
}
