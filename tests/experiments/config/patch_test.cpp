#include "experiments/config/patch.hpp"

#include "experiments/config/interpolate.hpp"
#include "tests/support/catch.hpp"

#include <cstdlib>
#include <string>

#include <fmt/format.h>

using namespace moelab;
using yaml::Node;

namespace {

Node read(const std::string& text) {
  Diagnostics diagnostics;
  const auto source = yaml::make_source("f.yaml", text);
  const Node node = yaml::parse(source->text, source, diagnostics);
  REQUIRE(diagnostics.render() == "");
  return node;
}

std::string patched(const std::string& base, const std::string& patch, const Resolve& resolve = {}) {
  Diagnostics diagnostics;
  Node node = read(base);
  apply_patch(node, expand_dotted_keys(read(patch), diagnostics), resolve);
  REQUIRE(diagnostics.render() == "");
  return yaml::emit_flow(node);
}

std::string interpolated(const std::string& text) {
  Diagnostics diagnostics;
  Node node = read(text);
  interpolate(node, diagnostics);
  return diagnostics.num_errors() > 0 ? diagnostics.render() : yaml::emit_flow(node);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("A patch merges mappings and replaces everything else") {
  CHECK(patched("{a: {b: 1, c: 2}, l: [1, 2]}", "{a: {c: 3, d: 4}, l: [9]}") ==
        "{a: {b: 1, c: 3, d: 4}, l: [9]}");
  CHECK(patched("{a: {b: 1}}", "{a: null}") == "{a: null}");
  CHECK(patched("{a: 1}", "{a: {b: 2}}") == "{a: {b: 2}}");
}

TEST_CASE("A dotted key sets one leaf") {
  CHECK(patched("{a: {b: {c: 1, d: 2}}}", "{a.b.c: 3}") == "{a: {b: {c: 3, d: 2}}}");
  CHECK(patched("{a: {}}", "{a.b.c: 3}") == "{a: {b: {c: 3}}}");
  CHECK(patched("{a: {b: 1}}", "{a.c: 2, a: {d: 3}, a.e.f: 4}") == "{a: {b: 1, c: 2, d: 3, e: {f: 4}}}");
}

TEST_CASE("A leaf that a patch sets twice is an error") {
  Diagnostics diagnostics;
  expand_dotted_keys(read("a.b: 1\na: {b: 2}\n"), diagnostics);
  CHECK(has(diagnostics.render(), "f.yaml:2:5: error: `b` is set twice"));
}

TEST_CASE("A mapping of another kind replaces what it lands on, of the same kind merges") {
  CHECK(patched("{f: {kind: dense, d: 1, x: 2}}", "{f: {kind: moe, e: 8}}") == "{f: {kind: moe, e: 8}}");
  CHECK(patched("{f: {kind: dense, d: 1}}", "{f: {kind: dense, x: 2}}") == "{f: {kind: dense, d: 1, x: 2}}");
  // The order in which a patch is written does not matter.
  CHECK(patched("{f: {kind: dense, d: 1}}", "{f.e: 8, f.kind: moe}") == "{f: {e: 8, kind: moe}}");

  const Resolve dense_by_default = [](const Node&) {
    return read("{f: {kind: dense, d: 1}, t: {kind: byte, m: 3}}");
  };
  CHECK(patched("{f: {d: 1}}", "{f: {kind: moe, e: 8}}", dense_by_default) == "{f: {kind: moe, e: 8}}");
  CHECK(patched("{f: {d: 1}}", "{f: {kind: dense, x: 8}}", dense_by_default) ==
        "{f: {d: 1, kind: dense, x: 8}}");
  CHECK(patched("{t: byte}", "{t: {m: 4}}", dense_by_default) == "{t: {kind: byte, m: 4}}");
  CHECK(patched("{t: byte}", "{t: {kind: bpe, m: 4}}", dense_by_default) == "{t: {kind: bpe, m: 4}}");
}

TEST_CASE("Overrides from the command line are patches with positions") {
  Diagnostics diagnostics;
  CHECK(yaml::emit_flow(parse_override("a.b=[1, x]", 1, diagnostics)) == "{a: {b: [1, x]}}");
  CHECK(yaml::emit_flow(parse_override("a=b=c", 1, diagnostics)) == "{a: b=c}");
  CHECK(yaml::emit_flow(parse_override("a.b={c: 1}", 1, diagnostics)) == "{a: {b: {c: 1}}}");
  const Node patch = parse_override("a.b=17", 2, diagnostics);
  const Node* value = find_path(patch, "a.b");
  CHECK(value->mark.source->name == "<override 2>");
  CHECK(value->mark.column == 5);
  CHECK(diagnostics.num_errors() == 0);
  for (const char* text : {"a.b", "=1", "a..b=1", ".a=1", "a b=1", "a=[1"}) {
    INFO(text);
    Diagnostics errors;
    parse_override(text, 3, errors);
    CHECK(has(errors.render(), "<override 3>:1:"));
  }
}

TEST_CASE("References are replaced by what they name") {
  CHECK(interpolated("{m: {d: 64}, f: \"${m.d}\", g: '${f}'}") == "{m: {d: 64}, f: 64, g: 64}");
  CHECK(interpolated("m: {d: [1, 2]}\nf: ${m}\n") == "{m: {d: [1, 2]}, f: {d: [1, 2]}}");
  CHECK(interpolated("a: 3\nname: run_${a}_x\n") == "{a: 3, name: run_3_x}");
  CHECK(has(interpolated("a: ${b.c}\n"), "f.yaml:1:4: error: `${b.c}`: there is no such key"));
  CHECK(has(interpolated("a: ${b}\nb: ${a}\n"), "leads back to itself"));
  CHECK(has(interpolated("a: x${b\n"), "never closed"));
  CHECK(has(interpolated("a: [1]\nb: x${a}\n"), "a list cannot stand inside a text"));
}

TEST_CASE("Environment variables are read, with a default") {
  setenv("MOELAB_TEST_VALUE", "12", 1);
  unsetenv("MOELAB_TEST_UNSET");
  CHECK(interpolated("a: ${env:MOELAB_TEST_VALUE,3}\n") == "{a: 12}");
  CHECK(interpolated("a: ${env:MOELAB_TEST_UNSET,3}\n") == "{a: 3}");
  CHECK(interpolated("p: ${env:MOELAB_TEST_UNSET,/usr}/share\n") == "{p: /usr/share}");
  CHECK(has(interpolated("a: ${env:MOELAB_TEST_UNSET}\n"), "MOELAB_TEST_UNSET is not set"));
}

TEST_CASE("The expansion of references is bounded") {
  std::string lists = "a0: [x, x]\n";
  for (int i = 1; i <= 24; ++i) lists += fmt::format("a{0}: [\"${{a{1}}}\", \"${{a{1}}}\"]\n", i, i - 1);
  CHECK(has(interpolated(lists), "more than 100000 values once references are expanded"));
  // One error, not one a reference.
  CHECK(interpolated(lists).find("error") == interpolated(lists).rfind("error"));

  std::string texts = "a0: " + std::string(1000, 'x') + "\n";
  for (int i = 1; i <= 15; ++i) texts += fmt::format("a{0}: _${{a{1}}}${{a{1}}}\n", i, i - 1);
  CHECK(has(interpolated(texts), "bytes once references are expanded"));

  std::string chain = "a0: 1\n";
  for (int i = 1; i <= 200; ++i) chain += fmt::format("a{}: ${{a{}}}\n", i, i - 1);
  CHECK(has(interpolated(chain), "more than 64 references lead to one another"));
}
