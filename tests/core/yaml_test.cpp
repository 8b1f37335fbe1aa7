#include "core/yaml.hpp"

#include "core/error.hpp"
#include "core/yaml_scalar.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

using namespace moelab;
using yaml::Node;

namespace {

struct Result {
  Node node;
  std::string errors;
};

Result read(const std::string& text) {
  Diagnostics diagnostics;
  const auto source = yaml::make_source("f.yaml", text);
  Result result;
  result.node = yaml::parse(source->text, source, diagnostics);
  result.errors = diagnostics.render();
  return result;
}

Node plain(const std::string& text) { return Node::scalar(text); }

bool is_integer(const std::string& text, std::int64_t value) {
  const auto parsed = yaml::read_integer(plain(text));
  return std::holds_alternative<std::int64_t>(parsed) && std::get<std::int64_t>(parsed) == value;
}

bool is_number(const std::string& text, double value) {
  const auto parsed = yaml::read_number(plain(text));
  return std::holds_alternative<double>(parsed) && std::get<double>(parsed) == value;
}

bool fails_as_integer(const Node& node) {
  return std::holds_alternative<yaml::ScalarError>(yaml::read_integer(node));
}

bool fails_as_number(const Node& node) {
  return std::holds_alternative<yaml::ScalarError>(yaml::read_number(node));
}

std::string help_of_integer(const std::string& text) {
  return std::get<yaml::ScalarError>(yaml::read_integer(plain(text))).help;
}

}  // namespace

TEST_CASE("Asking a value for what it does not have does not change it") {
  static_assert(std::is_same_v<decltype(std::declval<const Node&>().find("")), const Node*>);
  Result r = read("list: [1, 2, 3]\nscalar: x\nnull_value:\nmapping: {a: 1}\n");
  REQUIRE(r.errors.empty());
  const Node before = r.node;
  for (Node::Entry& entry : r.node.entries) {
    INFO(entry.key);
    Node& value = entry.value;
    for (const char* key : {"7", "0", "3", "b", ""}) {
      CHECK(value.find(key) == nullptr);
      CHECK(std::as_const(value).find(key) == nullptr);
      CHECK(value.find_entry(key) == nullptr);
      value.erase(key);
    }
  }
  CHECK(r.node == before);
  CHECK(r.node.find("list")->is_list());
  CHECK(r.node.find("list")->items.size() == 3);
  CHECK(r.node.find("scalar")->is_scalar());
  CHECK(r.node.find("null_value")->is_null());
  CHECK(r.node.find("mapping")->entries.size() == 1);
  CHECK(yaml::emit(r.node) == yaml::emit(before));
}

TEST_CASE("Values keep their text, order and position") {
  const Result r = read("a: 1\nb:\n  - x\n  - {c: 'no', d: }\n");
  REQUIRE(r.errors.empty());
  REQUIRE(r.node.is_mapping());
  REQUIRE(r.node.entries.size() == 2);
  CHECK(r.node.entries[1].key == "b");
  CHECK(r.node.entries[1].key_mark.line == 2);
  const Node& list = *r.node.find("b");
  REQUIRE(list.items.size() == 2);
  CHECK(list.items[0].text == "x");
  CHECK_FALSE(list.items[0].quoted);
  CHECK(list.items[0].mark.line == 3);
  CHECK(list.items[0].mark.column == 5);
  const Node* c = list.items[1].find("c");
  CHECK(c->text == "no");
  CHECK(c->quoted);
  CHECK(c->mark.column == 9);
  CHECK(list.items[1].find("d")->is_null());
}

TEST_CASE("Columns count characters, not bytes") {
  const Result r = read("{ä: 1, ö: 2}\n");
  CHECK(r.node.entries[1].key_mark.column == 8);
}

TEST_CASE("A value left out is placed at its key, not at the next line") {
  const Result r = read("a:\n\n\nb: 2\n");
  CHECK(r.node.find("a")->mark.line == 1);
  CHECK(read("a: null\nb: 2\n").node.find("a")->mark.column == 4);
}

TEST_CASE("A key that stands twice is an error at any depth") {
  CHECK(read("a: 1\na: 2\n").errors.find("f.yaml:2:1: error: the key `a` stands twice") == 0);
  CHECK(read("m: {k: 1, n: {q: 1, q: 2}}\n").errors.find("f.yaml:1:21: error") == 0);
  CHECK(read("l:\n  - {k: 1, k: 1}\n").errors.find("f.yaml:2:12: error") == 0);
  // Both are told, and reading goes on.
  const Result both = read("a: 1\na: 2\nb: 1\nb: 2\nc: 3\n");
  CHECK(both.errors.find("`a`") != std::string::npos);
  CHECK(both.errors.find("`b`") != std::string::npos);
  CHECK(both.node.find("c") != nullptr);
}

TEST_CASE("Merge keys are refused by name") {
  const Result r = read("x: &x {j: 1}\nc: {<<: *x}\n");
  CHECK(r.errors.find("f.yaml:2:5: error: merge keys (`<<`)") == 0);
  CHECK(r.errors.find("extends") != std::string::npos);
}

TEST_CASE("A second document is an error at its start") {
  CHECK(read("a: 1\n---\nb: 2\n").errors.find("f.yaml:2:1: error: a second document") == 0);
  CHECK(read("a: 1\n...\nb: 2\n").errors.find("f.yaml:3:1: error: this does not belong") == 0);
  CHECK(read("- a\nb: 1\n").errors.find("f.yaml:2:1: error: this does not belong") == 0);
  CHECK(read("---\na: 1\n").errors.empty());
  CHECK(read("---\na: 1\n...\n").errors.empty());
}

TEST_CASE("Nothing in a file is null") {
  for (const char* text : {"", "# only a comment\n", "\n\n", "---\n", "\xEF\xBB\xBF"}) {
    INFO(text);
    const Result r = read(text);
    CHECK(r.errors.empty());
    CHECK(r.node.is_null());
  }
}

TEST_CASE("Byte order mark and CRLF change nothing") {
  const Node expected = read("- a: 1\n- b: [2, x]\n").node;
  CHECK(read("\xEF\xBB\xBF- a: 1\n- b: [2, x]\n").node == expected);
  CHECK(read("- a: 1\r\n- b: [2, x]\r\n").node == expected);
  CHECK(read("\xEF\xBB\xBF- a: 1\r\n- b: [2, x]").node == expected);
  CHECK(read("a: 1\r\na: 2\r\n").errors.find("f.yaml:2:1:") == 0);
}

TEST_CASE("Nesting and aliases are bounded") {
  CHECK(read(std::string(600, '[')).errors.find("nested more than 64 levels") != std::string::npos);
  CHECK(read(std::string(60, '[') + std::string(60, ']')).errors.empty());
  std::string deep;
  for (int i = 0; i < 80; ++i) deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  CHECK(read(deep).errors.find("nested more than") != std::string::npos);

  // 9 levels of 9 aliases each stand for 9^9 values.
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c <= 'i'; ++c) {
    bomb += fmt::format("{0}: &{0} [", c);
    for (int i = 0; i < 9; ++i) bomb += fmt::format("{}*{}", i == 0 ? "" : ",", static_cast<char>(c - 1));
    bomb += "]\n";
  }
  CHECK(read(bomb).errors.find("more than 100000 values once aliases are expanded") != std::string::npos);
  const Result fine = read("a: &a [1, 2]\nb: *a\n");
  CHECK(fine.errors.empty());
  CHECK(*fine.node.find("b") == *fine.node.find("a"));
  CHECK_FALSE(read("a: &a [1, *a]\n").errors.empty());
  CHECK_FALSE(read("a: *nothing\n").errors.empty());
}

TEST_CASE("What is not plain YAML text is refused with its place") {
  CHECK(read("a:\n\tb: 1\n").errors.find("f.yaml:2:") == 0);
  CHECK(read("a:\n\tb: 1\n").errors.find("spaces, not tabs") != std::string::npos);
  CHECK(read("a: [1, 2\nb: 3\n").errors.find("f.yaml:") == 0);
  CHECK(read("a: 'open\nb: it''s\n").errors.find("f.yaml:1:4: error: the quote is never closed") == 0);
  CHECK(read("a: \"open \\\" \n").errors.find("f.yaml:1:4: error: the quote is never closed") == 0);
  CHECK(read("a: 'it''s'\nb: \"\\\"\"\n").errors.empty());
  CHECK(read("a: \xff\n").errors.find("f.yaml:1:4: error: byte 0xFF") == 0);
  CHECK(read(std::string("a: \0b\n", 6)).errors.find("f.yaml:1:4: error: byte 0x00") == 0);
  CHECK(read("a: !!python/object:x {}\n").errors.find("f.yaml:1:") == 0);
  CHECK(read("{[1, 2]: 3}\n").errors.find("a key must be a name") != std::string::npos);
  CHECK(read("? \n: 3\n").errors.find("a key must be a name") != std::string::npos);
}

TEST_CASE("A text with the character NUL is refused") {
  CHECK_THAT(read("a: 1\nb: \"x\\0y\"\n").errors,
             Contains("f.yaml:2:4: error: the text holds the character NUL"));
}

TEST_CASE("A written null stands where it is written, whatever stands before it in its line") {
  const Result result = read("{ä: ~, b: null}\n");
  CHECK(result.node.find_entry("ä")->value.mark.column == 5);
  CHECK(result.node.find_entry("b")->value.mark.column == 11);
}

TEST_CASE("Errors show line, caret and help") {
  Diagnostics diagnostics;
  const auto source = yaml::make_source("e.yaml", "model:\n  num_expert: 8\n");
  diagnostics.error({source, 2, 3}, "unknown", "did you mean `count`?");
  CHECK(diagnostics.render() ==
        "e.yaml:2:3: error: unknown\n"
        "    2 |   num_expert: 8\n"
        "      |   ^~~~~~~~~~\n"
        "      help: did you mean `count`?\n");
  diagnostics.error({source, 2, 3}, "unknown", "said twice");
  CHECK(diagnostics.num_errors() == 1);
  diagnostics.error({source, 1, 1}, "first");
  CHECK(diagnostics.render().find("e.yaml:1:1: error: first") == 0);
  CHECK_THROWS_AS(diagnostics.throw_if_errors(), ConfigError);
}

TEST_CASE("Integers") {
  CHECK(is_integer("0", 0));
  CHECK(is_integer("-7", -7));
  CHECK(is_integer("+7", 7));
  CHECK(is_integer("3000000", 3000000));
  CHECK(is_integer("3_000_000", 3000000));
  CHECK(is_integer("3e6", 3000000));
  CHECK(is_integer("3E+6", 3000000));
  CHECK(is_integer("1.5e6", 1500000));
  CHECK(is_integer("1e3", 1000));
  CHECK(is_integer("2000e-3", 2));
  CHECK(is_integer("9223372036854775807", 9223372036854775807));
  CHECK(is_integer("9007199254740993", 9007199254740993));  // 2^53 + 1: no detour through a double
  for (const char* text : {"010",   "08",
                           "0010",  "0o10",
                           "0x10",  "0b1",
                           "1.5",   "1.5e0",
                           "2.0",   "1e-3",
                           "yes",   "true",
                           "",      "-",
                           "e3",    "1e",
                           "1_",    "_1",
                           "1__0",  "1 000",
                           "1,000", "9223372036854775808",
                           "1e19",  "1e400",
                           ".inf",  "12h",
                           "1:30"}) {
    INFO(text);
    CHECK(fails_as_integer(plain(text)));
  }
  CHECK(fails_as_integer(Node::scalar("3", true)));
  CHECK(fails_as_integer(Node()));
  CHECK(fails_as_integer(Node::list()));
  CHECK(help_of_integer("010") == "write 10");
  CHECK(help_of_integer("0010") == "write 10");
  CHECK(help_of_integer("2.0") == "write 2");
}

TEST_CASE("Numbers") {
  CHECK(is_number("1e-4", 1e-4));
  CHECK(is_number("1.0e-4", 1e-4));
  CHECK(is_number("0.1", 0.1));
  CHECK(is_number("-0.5", -0.5));
  CHECK(is_number(".5", 0.5));
  CHECK(is_number("5.", 5.0));
  CHECK(is_number("3", 3.0));
  CHECK(is_number("1_000.5", 1000.5));
  CHECK(is_number("0", 0.0));
  for (const char* text : {"010", "00.5", "fast", "yes", ".inf", "-.inf", "nan", ".NaN", "1e999", "1.2.3",
                           "1e4.5", "1e+-3", "1e-+3", "0x1p3", "1e", ".", "--1", "1f", "5%"}) {
    INFO(text);
    CHECK(fails_as_number(plain(text)));
  }
  CHECK(fails_as_number(Node::scalar("1e-4", true)));
}

TEST_CASE("Truth values are true and false, nothing else") {
  CHECK(std::get<bool>(yaml::read_boolean(plain("true"))));
  CHECK_FALSE(std::get<bool>(yaml::read_boolean(plain("false"))));
  for (const char* text : {"yes", "no", "on", "off", "1", "0", "tRUE", "y"}) {
    INFO(text);
    CHECK(std::holds_alternative<yaml::ScalarError>(yaml::read_boolean(plain(text))));
  }
  CHECK(std::holds_alternative<yaml::ScalarError>(yaml::read_boolean(Node::scalar("true", true))));
}

TEST_CASE("Numbers are emitted so that YAML 1.1 readers take them for numbers") {
  CHECK(yaml::number_text(1e-4) == "0.0001");
  CHECK(yaml::number_text(1e-5) == "1.0e-05");
  CHECK(yaml::number_text(1.5e-8) == "1.5e-08");
  CHECK(yaml::number_text(3) == "3.0");
  CHECK(yaml::number_text(1e20) == "1.0e+20");
  for (const double value : {0.1, 1.0 / 3, 1e-300, 123456789.125, -2.5e-7}) {
    CHECK(is_number(yaml::number_text(value), value));
  }
}

TEST_CASE("Emitted text reads back as the same values") {
  const Node node =
      read("a: {b: [1, 2], c: [], d: {}, e: null}\nl:\n  - {x: 1, y: [{z: 2}]}\n  - [3, [4]]\n").node;
  const std::string text = yaml::emit(node);
  CHECK(read(text).errors.empty());
  CHECK(read(text).node == node);
  CHECK(read(yaml::emit_flow(node)).node == node);

  for (const char* words :
       {"relu",        "no",         "123",        "1e-4",  "",    " ",    "a: b",        "a #b",
        "'q'",         "\"q\"",      "line\nline", "tab\t", "[x]", "{x}",  "&a",          "*a",
        "!t",          "-",          "- a",        "null",  "~",   "true", "/usr/**/*.h", "naïve",
        "back\\slash", "2020-01-01", "=",          "<<",    "x, y"}) {
    INFO(words);
    Node quoted = Node::mapping();
    quoted.set("k", Node::scalar(words, true));
    const Result again = read(yaml::emit(quoted));
    REQUIRE(again.errors.empty());
    CHECK(again.node.find("k")->text == words);
  }
}
