#include "experiments/report/report.hpp"

#include "core/file.hpp"
#include "experiments/report/config_diff.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace moelab;

namespace {

ResultsFile results_of(const TemporaryFolder& folder, const std::vector<RunData>& runs) {
  std::vector<std::filesystem::path> files;
  for (const RunData& data : runs) {
    files.push_back(folder.path() / (data.info.name + ".h5"));
    write_run_file(files.back(), data);
  }
  ExperimentInfo experiment;
  experiment.name = "x";
  experiment.baseline = "dense";
  write_results_file(folder.path() / "results.h5", experiment, files);
  return ResultsFile(folder.path() / "results.h5");
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("report is one page with everything in it", "[report]") {
  const TemporaryFolder folder;
  const std::string html = report::to_html(ResultsFile(write_example_results(folder.path())));
  for (const char* id :
       {"comparison", "figures", "routing", "accounting", "differences", "runs", "provenance"})
    CHECK_THAT(html, Contains(std::string("<section id=\"") + id + "\">"));
  CHECK(count(html, "<svg ") == 12);
  CHECK_THAT(html, Contains("Does it help? &lt;b&gt;&amp;") && !Contains("<b>"));
  // Nothing is fetched, nothing runs.
  CHECK_THAT(html, !Contains("<script") && !Contains("src=") && !Contains("url(") && !Contains("@import"));
  CHECK(count(html, "http") ==
        count(html, "xmlns=\"http://www.w3.org/2000/svg\"") + count(html, "http-equiv"));
}

TEST_CASE("report escapes names from the experiment file", "[report]") {
  const TemporaryFolder folder;
  RunData data = example_run("dense", 0, 3.0);
  data.info.variant = "<img src=x onerror=alert(1)>";
  data.info.provenance.emplace_back("command_line", "moelab run '<script>'");
  data.info.config_resolved = "a: </pre><script>";
  data.status = RunStatus::failed;
  data.status_reason = "<script>";
  const std::string html = report::to_html(results_of(folder, {data}));
  CHECK_THAT(html, !Contains("<script") && !Contains("<img"));
  CHECK_THAT(html, Contains("&lt;img src=x"));
}

TEST_CASE("report's verdict is no stronger than the seeds", "[report]") {
  const TemporaryFolder folder;
  const auto runs = [](const std::vector<double>& dense, const std::vector<double>& moe) {
    std::vector<RunData> all;
    for (std::size_t s = 0; s < dense.size(); ++s) all.push_back(example_run("dense", s, dense[s]));
    for (std::size_t s = 0; s < moe.size(); ++s) all.push_back(example_run("moe", s, moe[s]));
    return all;
  };
  CHECK_THAT(report::verdict(results_of(folder, runs({3.0, 3.1}, {2.8, 2.9}))),
             Contains("lower by 0.2000") && Contains("too few"));
  CHECK_THAT(report::verdict(results_of(folder, runs({3.0, 3.1, 3.2}, {2.8, 2.91, 2.99}))),
             Contains("moe is lower by 0.2000 than dense") && Contains("3 seeds"));
  CHECK_THAT(report::verdict(results_of(folder, runs({3.0, 3.1, 3.2}, {2.8, 3.3, 3.2}))),
             Contains("moe shows no clear difference from dense"));
  CHECK_THAT(report::verdict(results_of(folder, runs({3.0}, {}))), Contains("nothing to compare"));
  CHECK_THAT(report::verdict(results_of(folder, {})), Contains("no run has been evaluated"));
}

TEST_CASE("report's verdict claims no difference that its p-value does not carry", "[report]") {
  const TemporaryFolder folder;
  std::vector<RunData> runs;
  const auto add = [&](const std::string& variant, const std::vector<double>& losses) {
    for (std::size_t s = 0; s < losses.size(); ++s) runs.push_back(example_run(variant, s, losses[s]));
  };
  add("dense", {3, 3, 3});
  // t = 0.1 / (0.035 / sqrt 3) = 4.95 at 2 degrees of freedom: p = 0.0385 alone, 4 x 0.0385 among four.
  add("moe", {2.9, 2.865, 2.935});
  const std::string alone = report::verdict(results_of(folder, runs));
  CHECK_THAT(alone, Contains("moe is lower by 0.1000 than dense") && Contains("p = 0.038 after Holm"));
  for (const char* other : {"b", "c", "d"}) add(other, {2.9, 2.865, 2.935});
  const std::string among_four = report::verdict(results_of(folder, runs));
  CHECK_THAT(among_four, Contains("moe shows no clear difference from dense") &&
                             Contains("p = 0.15 after Holm") && !Contains(" is lower"));
  // One that is clear stays so among the others.
  add("clear", {2.9, 2.9001, 2.8999});
  CHECK_THAT(report::verdict(results_of(folder, runs)),
             Contains("clear is lower by 0.1000 than dense") && Contains("c shows no clear difference"));
}

TEST_CASE("report gives figures with long names the whole width", "[report]") {
  const TemporaryFolder folder;
  RunData data = example_run("dense", 0, 3.0);
  CHECK_THAT(report::to_html(results_of(folder, {data})), !Contains("<figure class=\"wide\">"));
  data.info.variant = "dense_" + std::string(40, 'x');
  CHECK_THAT(report::to_html(results_of(folder, {data})), Contains("<figure class=\"wide\"><svg"));
}

TEST_CASE("report shows what configurations differ in", "[report]") {
  const auto text = [](const std::vector<report::DiffLine>& lines) {
    std::string all;
    for (const report::DiffLine& l : lines) all += std::string(1, l.mark) + l.text + "\n";
    return all;
  };
  CHECK(text(report::line_diff("a\nb\nc\nd\ne\n", "a\nb\nx\nd\ne\n")) == " b\n-c\n+x\n d\n");
  CHECK(text(report::line_diff("a\nb\n", "a\nb\n")).empty());
  CHECK(text(report::line_diff("", "a\n")) == "+a\n");
  CHECK(text(report::line_diff("a\nb\nc\n", "a\nc\n", 0)) == "-b\n");
}
