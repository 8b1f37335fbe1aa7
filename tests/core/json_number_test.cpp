#include "core/json_number.hpp"

#include "tests/support/catch.hpp"

#include <cstdint>
#include <string>

using namespace moelab;
using nlohmann::json;

TEST_CASE("whole numbers of JSON are taken as they are, or refused", "[json_number]") {
  CHECK(whole_number<std::int64_t>(json::parse("9223372036854775807")) == INT64_MAX);
  CHECK(whole_number<std::int64_t>(json::parse("-9223372036854775808")) == INT64_MIN);
  CHECK(whole_number<std::uint64_t>(json::parse("18446744073709551615")) == UINT64_MAX);
  CHECK(whole_number<std::int32_t>(json::parse("-2147483648")) == INT32_MIN);
  for (const char* text : {"9223372036854775808", "25999999999999999999", "-9223372036854775809", "1e30",
                           "1e400", "1.0", "0.5", "null", "true", "\"1\"", "[1]", "{}"}) {
    INFO(text);
    const json value = json::parse(text, nullptr, false);
    CHECK_THROWS_WITH(whole_number<std::int64_t>(value), Contains("is no whole number of 64 bits"));
  }
  CHECK_THROWS_WITH(whole_number<std::int32_t>(json(2147483648)),
                    Contains("2147483648 is no whole number of 32 bits"));
  CHECK_THROWS_AS(whole_number<std::uint64_t>(json(-1)), Error);
}
