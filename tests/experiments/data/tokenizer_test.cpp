#include "experiments/data/tokenizer.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace moelab;

TEST_CASE("The byte tokenizer gives back any bytes") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const auto tokenizer = make_byte_tokenizer();
  for (const std::string& text :
       {std::string(), all, std::string("na\xC3\xAFve\n"), std::string(3'000'000, 'x')}) {
    std::vector<std::int32_t> ids = {7};
    tokenizer->encode(text, ids);
    REQUIRE(ids[0] == 7);
    CHECK(ids.size() == text.size() + 1);
    CHECK(tokenizer->decode({ids.begin() + 1, ids.end()}) == text);
  }
}

TEST_CASE("The vocabulary is known without the text") {
  CHECK(vocab_size_of({"byte"}) == 256);
  CHECK(vocab_size_of({"bpe", 1024}) == 1024);
  CHECK_THROWS_AS(vocab_size_of({"words"}), Error);
}

TEST_CASE("Bytes for people are UTF-8") {
  CHECK(printable("a \xC3\xA9\xF0\x9F\x98\x80") == "a \xC3\xA9\xF0\x9F\x98\x80");
  CHECK(printable("\n\x7F\\") == "\\x0a\\x7f\\\\");
  // A lone continuation, a cut character, a long form, a surrogate, beyond Unicode.
  CHECK(printable("\x80") == "\\x80");
  CHECK(printable("\xE4\xB8") == "\\xe4\\xb8");
  CHECK(printable("\xC0\xAF") == "\\xc0\\xaf");
  CHECK(printable("\xE0\x80\xAF") == "\\xe0\\x80\\xaf");
  CHECK(printable("\xED\xA0\x80") == "\\xed\\xa0\\x80");
  CHECK(printable("\xF4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE("The ids of the byte tokenizer are the bytes") {
  const auto tokenizer = make_byte_tokenizer();
  std::vector<std::int32_t> ids;
  tokenizer->encode("A\xFF", ids);
  CHECK(ids == std::vector<std::int32_t>{65, 255});
  CHECK(tokenizer->vocab_size() == 256);
  CHECK_THROWS_AS(tokenizer->decode({256}), Error);
}
