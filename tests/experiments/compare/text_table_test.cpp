#include "experiments/compare/text_table.hpp"

#include "tests/support/catch.hpp"

#include <cmath>

using namespace moelab;

TEST_CASE("text table in each notation", "[text_table]") {
  const TextTable table{{"variant", "loss"}, {{"a_b", "1.0 ± 0.1"}, {"with, \"comma\"", "10"}}};
  CHECK(to_terminal(table) ==
        "variant             loss\n"
        "a_b            1.0 ± 0.1\n"
        "with, \"comma\"         10\n");
  CHECK(to_markdown(table) ==
        "| variant | loss |\n| --- | ---: |\n| a\\_b | 1.0 ± 0.1 |\n| with, \"comma\" | 10 |\n");
  CHECK(to_csv(table) == "variant,loss\na_b,1.0 ± 0.1\n\"with, \"\"comma\"\"\",10\n");
  CHECK(to_latex(table) ==
        "\\begin{tabular}{lr}\n\\toprule\nvariant & loss \\\\\n\\midrule\na\\_b & 1.0 $\\pm$ 0.1 \\\\\n"
        "with, \"comma\" & 10 \\\\\n\\bottomrule\n\\end{tabular}\n");
}

TEST_CASE("text table on a terminal that is narrower comes in parts, each with the names of the rows",
          "[text_table]") {
  const TextTable table{{"name", "first", "2nd", "third"}, {{"ä", "1", "2", "3"}, {"b", "10", "20", "30"}}};
  const std::string whole = "name  first  2nd  third\nä         1    2      3\nb        10   20     30\n";
  CHECK(to_terminal(table) == whole);
  CHECK(to_terminal(table, 23) == whole);
  CHECK(to_terminal(table, 22) ==
        "name  first  2nd\nä         1    2\nb        10   20\n\n"
        "name  third\nä         3\nb        30\n");
  // A column that is too wide by itself is not cut.
  CHECK(to_terminal(table, 3) ==
        "name  first\nä         1\nb        10\n\nname  2nd\nä       2\nb      20\n\n"
        "name  third\nä         3\nb        30\n");
  CHECK(to_terminal({{"name"}, {{"a"}}}, 2) == "name\na\n");
  // Where two columns say what a row is of, both come again.
  CHECK(to_terminal({{"run", "layer", "cv", "dead"}, {{"a", "0", "1", "2"}}, 2}, 14) ==
        "run  layer  cv\na        0   1\n\nrun  layer  dead\na        0     2\n");
}

TEST_CASE("text table in LaTeX, with characters that its fonts lack", "[text_table]") {
  // In OT1, the encoding of a plain document, < > | print as other signs.
  CHECK_THAT(to_latex({{"a|b"}, {{"<0.0001"}, {"x>1"}}}), Contains("a\\textbar{}b \\\\") &&
                                                              Contains("\n\\textless{}0.0001 \\\\") &&
                                                              Contains("\nx\\textgreater{}1 \\\\"));
}

TEST_CASE("text table whose cells are names of others", "[text_table]") {
  const auto cell = [](const std::string& text) { return TextTable{{text}, {{text}}}; };
  const std::string escape = "a\x1b]0;owned\a", lines = "a\n\\immediate\\write18{id}";
  CHECK(to_terminal(cell(escape)) == "a\\x1b]0;owned\\x07\na\\x1b]0;owned\\x07\n");
  CHECK(to_terminal(cell("a\nb")) == "a\\nb\na\\nb\n");
  // A width is that of what is shown.
  CHECK(to_terminal({{"x", "y"}, {{"\x1b", "1"}}}) == "x     y\n\\x1b  1\n");
  CHECK_THAT(
      to_latex(cell(lines)),
      Contains("\na\\textbackslash{}n\\textbackslash{}immediate\\textbackslash{}write18\\{id\\} \\\\\n"));
  CHECK_THAT(to_markdown(cell("<b>&lt;\n![x](http://y) ~~$z$~~ #")),
             Contains("\n| \\<b\\>\\&lt;\\\\n![x\\](http://y) \\~\\~\\$z\\$\\~\\~ \\# |\n"));
  CHECK_THAT(to_markdown({{"a"}, {{"1.4 [1.2, 1.7] (1 not reached)"}, {"[a][b]]:"}}}),
             Contains("| 1.4 [1.2, 1.7] (1 not reached) |\n| [a\\][b]\\]: |\n"));
  CHECK(to_csv(cell("=HYPERLINK(1)")) == "'=HYPERLINK(1)\n'=HYPERLINK(1)\n");
  CHECK(to_csv({{"a"}, {{"@SUM(A1,1)"}, {"-2+3"}, {"+1+cmd|' /C calc'!A0"}}}) ==
        "a\n\"'@SUM(A1,1)\"\n'-2+3\n'+1+cmd|' /C calc'!A0\n");
  // Numbers are none of that.
  const std::string numbers = "a\n-0.25\n-1e-05\n+3\n-\n-inf\n";
  CHECK(to_csv({{"a"}, {{"-0.25"}, {"-1e-05"}, {"+3"}, {"-"}, {"-inf"}}}) == numbers);
  CHECK(to_csv(cell("a\tb\rc")) == "a\\tb\\x0dc\na\\tb\\x0dc\n");
}

TEST_CASE("text table numbers", "[text_table]") {
  CHECK(with_si_prefix(0) == "0");
  CHECK(with_si_prefix(999) == "999");
  CHECK(with_si_prefix(999.7) == "1.00k");
  CHECK(with_si_prefix(1000) == "1.00k");
  CHECK(with_si_prefix(1264) == "1.26k");
  CHECK(with_si_prefix(12'640) == "12.6k");
  CHECK(with_si_prefix(126'400) == "126k");
  CHECK(with_si_prefix(999'499) == "999k");
  CHECK(with_si_prefix(999'600) == "1.00M");
  CHECK(with_si_prefix(9'996'000) == "10.0M");
  CHECK(with_si_prefix(1234567) == "1.23M");
  CHECK(with_si_prefix(30e9) == "30.0G");
  CHECK(with_si_prefix(46702792704.0) == "46.7G");
  CHECK(with_si_prefix(-12345) == "-12.3k");
  CHECK(with_si_prefix(std::nan("")) == "-");
  CHECK(with_digits(1.005, 1) == "1.0");
  CHECK(with_digits(std::nan(""), 2) == "-");
  CHECK(exact(0.1) == "0.1");
  CHECK(exact(1.0 / 3) == "0.3333333333333333");
  CHECK(exact(std::nan("")).empty());
}
