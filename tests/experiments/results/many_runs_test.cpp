#include "experiments/compare/compare_files.hpp"
#include "experiments/results/describe.hpp"
#include "experiments/results/results_file.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>

using namespace moelab;

TEST_CASE("two thousand runs in one results file", "[limits]") {
  const TemporaryFolder folder;
  std::vector<std::filesystem::path> files;
  for (int i = 0; i < 2000; ++i) {
    RunData data;
    data.status = RunStatus::done;
    data.info.variant = i % 2 == 0 ? "dense" : "moe";
    data.info.seed = static_cast<std::uint64_t>(i / 2);
    data.info.name = fmt::format("{}-s{}", data.info.variant, data.info.seed);
    data.eval.push_back(example_eval(1, 3.0 + 0.001 * (i % 7) - 0.1 * (i % 2)));
    data.eval.back().loss_by_domain.clear();
    files.push_back(folder.path() / (data.info.name + ".h5"));
    write_run_file(files.back(), data);
  }
  write_results_file(folder.path() / "results.h5", {}, files);
  const ResultsFile file(folder.path() / "results.h5");
  REQUIRE(file.runs().size() == 2000);
  CHECK(file.run("moe-s999").eval_loss_final == 3.0 + 0.001 * (1999 % 7) - 0.1);
  const Comparison c = compare_file(file);
  CHECK(c.variants.at(1).delta.num_seeds == 1000);
  CHECK_THAT(describe_file(file), Contains("dense-s0") && Contains("moe-s999"));
}
