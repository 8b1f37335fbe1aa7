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

TEST_CASE("text table in LaTeX, with characters that its fonts lack", "[text_table]") {
  // In OT1, the encoding of a plain document, < > | print as other signs.
  CHECK_THAT(to_latex({{"a|b"}, {{"<0.0001"}, {"x>1"}}}), Contains("a\\textbar{}b \\\\") &&
                                                              Contains("\n\\textless{}0.0001 \\\\") &&
                                                              Contains("\nx\\textgreater{}1 \\\\"));
}

TEST_CASE("text table numbers", "[text_table]") {
  CHECK(with_si_prefix(0) == "0");
  CHECK(with_si_prefix(999) == "999");
  CHECK(with_si_prefix(999.7) == "1.00k");
  CHECK(with_si_prefix(1234567) == "1.23M");
  CHECK(with_si_prefix(46702792704.0) == "46.7G");
  CHECK(with_si_prefix(-12345) == "-12.3k");
  CHECK(with_si_prefix(std::nan("")) == "-");
  CHECK(with_digits(1.005, 1) == "1.0");
  CHECK(with_digits(std::nan(""), 2) == "-");
  CHECK(exact(0.1) == "0.1");
  CHECK(exact(1.0 / 3) == "0.3333333333333333");
  CHECK(exact(std::nan("")).empty());
}
