#include "experiments/data/tokenizer.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace moelab;

TEST_CASE("Every tokenizer gives back any bytes") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  for (const char* kind : {"byte"}) {
    CAPTURE(kind);
    const auto tokenizer = make_tokenizer({kind});
    for (const std::string& text : {std::string(), all, std::string("na\xC3\xAFve\n")}) {
      std::vector<std::int32_t> ids = {7};
      tokenizer->encode(text, ids);
      REQUIRE(ids[0] == 7);
      for (const std::int32_t id : ids) CHECK((id >= 0 && id < tokenizer->vocab_size()));
      CHECK(tokenizer->decode({ids.begin() + 1, ids.end()}) == text);
    }
  }
  CHECK_THROWS_AS(make_tokenizer({"words"}), Error);
}

TEST_CASE("The ids of the byte tokenizer are the bytes") {
  const auto tokenizer = make_tokenizer({"byte"});
  std::vector<std::int32_t> ids;
  tokenizer->encode("A\xFF", ids);
  CHECK(ids == std::vector<std::int32_t>{65, 255});
  CHECK(tokenizer->vocab_size() == 256);
  CHECK_THROWS_AS(tokenizer->decode({256}), Error);
}

TEST_CASE("Tokens are shown on one line") {
  CHECK(visible_text("a b\n\t\r\x7f\xC3\xA4~") == "a b\\n\\t\\x0d\\x7f\\xc3\\xa4~");
  CHECK(visible_text(std::string_view("\0", 1)) == "\\x00");
}
