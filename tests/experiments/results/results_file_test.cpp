#include "experiments/results/results_file.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/results/describe.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <cmath>

using namespace moelab;

namespace {

template <class T>
T& named(std::vector<T>& all, const std::string& name) {
  for (T& one : all)
    if (one.name == name) return one;
  throw Error("there is no " + name);
}

}  // namespace

TEST_CASE("results file of an experiment is made of the files of its runs", "[results]") {
  const TemporaryFolder folder;
  const ResultsFile file(write_example_results(folder.path()));
  CHECK(file.experiment().name == "example");
  CHECK(file.experiment().config_source == "name: example\n");
  CHECK(file.experiment().overrides == std::vector<std::string>{"train.max_steps=5"});
  REQUIRE(file.runs().size() == 6);
  CHECK(file.run("moe-s2").eval_loss_final == 2.84);
  CHECK(file.run("moe-s2").wall_seconds == 12.5);
  REQUIRE_THROWS_WITH(file.run("moe-s7"), Contains("dense-s0, dense-s1") && Contains("moe-s7"));

  // Everything of a run is there, with its scales, as in the file that it came from.
  const hdf5::Reader one(folder.path() / "moe-s1.h5");
  for (const std::string& group : one.groups("runs/moe-s1")) {
    for (const std::string& name : one.datasets("runs/moe-s1/" + group)) {
      const std::string path = "runs/moe-s1/" + group + "/" + name;
      INFO(path);
      const hdf5::Dataset expected = one.dataset(path), got = file.reader().dataset(path);
      CHECK(got.shape == expected.shape);
      CHECK(got.dimensions == expected.dimensions);
      CHECK(got.values.index() == expected.values.index());
      CHECK(got.meaning.units == expected.meaning.units);
    }
  }
  CHECK(file.reader().read<float>("runs/moe-s1/routing/router_probability_mean")[1] == 0.2F);

  // Provenance: what all agree on, and what they do not.
  CHECK(std::get<std::string>(*file.reader().attribute("provenance", "hostname")) == "somewhere");
  CHECK(std::get<std::string>(*file.reader().attribute("provenance", "seed_text")) ==
        "3 values: see the runs");
  CHECK(std::get<std::string>(*file.reader().attribute("runs/moe-s2/provenance", "seed_text")) == "2");

  // Both variants have losses x, x + 0.01, x + 0.04: each difference is -0.2.
  CHECK(file.reader().read<std::string>("variants/variant") == std::vector<std::string>{"dense", "moe"});
  CHECK_THAT(file.reader().read<double>("variants/delta_vs_baseline")[1], WithinAbs(-0.2, 1e-12));
  CHECK(std::isnan(file.reader().read<double>("variants/delta_vs_baseline")[0]));
  CHECK(file.reader().read<std::int64_t>("variants/num_seeds") == std::vector<std::int64_t>{3, 3});
  CHECK(file.reader().read<double>("variants/relative_compute")[1] == 1);
}

TEST_CASE("results files of a classification say its accuracy", "[results]") {
  const TemporaryFolder folder;
  RunData data = example_run("images", 0, 3.0);
  data.eval.front().accuracy = 0.5;
  data.eval.back().accuracy = 0.75;
  write_run_file(folder.path() / "run.h5", data);
  const ResultsFile images(folder.path() / "run.h5");
  CHECK(images.runs().at(0).accuracy_final == 0.75);
  const TextTable table = runs_table(images.runs());
  const auto column = std::ranges::find(table.header, "accuracy") - table.header.begin();
  CHECK(table.rows.at(0).at(static_cast<std::size_t>(column)) == "0.7500");
  CHECK(table.rows.at(0).size() == table.header.size());

  const ResultsFile text(write_example_results(folder.path()));
  CHECK(std::isnan(text.runs().at(0).accuracy_final));
  CHECK(std::ranges::count(runs_table(text.runs()).header, "accuracy") == 0);
}

TEST_CASE("results files of few or no runs can be written and read", "[results]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "results.h5";
  ExperimentInfo experiment;
  experiment.name = "nothing yet";
  write_results_file(path, experiment, {});
  CHECK(ResultsFile(path).runs().empty());

  RunData data = example_run("dense", 0, 3.0);
  data.eval.clear();
  data.train.clear();
  data.routing.clear();
  write_run_file(folder.path() / "run.h5", data);
  write_results_file(path, experiment, {folder.path() / "run.h5"});
  const ResultsFile file(path);
  CHECK(std::isnan(file.runs().at(0).eval_loss_final));
  CHECK_FALSE(file.series("dense-s0", "eval/loss"));
}

TEST_CASE("results files that are not ours, or come twice, are refused", "[results]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "run.h5";
  hdf5::Group other;
  other.attribute("title", std::string("something else"));
  hdf5::write_file(path, other);
  REQUIRE_THROWS_WITH(ResultsFile(path), Contains("run.h5 is no file of results"));
  other.attribute("format", std::string("moelab-results"));
  other.attribute("format_version", std::string("2.0"));
  hdf5::write_file(path, other);
  REQUIRE_THROWS_WITH(ResultsFile(path), Contains("format version 2.0"));
  write_run_file(path, example_run("dense", 0, 3.0));
  REQUIRE_THROWS_WITH(write_results_file(folder.path() / "results.h5", {}, {path, path}),
                      Contains("dense-s0") && Contains("twice"));
}

TEST_CASE("results files with names that lead elsewhere are refused", "[results]") {
  const TemporaryFolder folder;
  for (const std::string name : {"..", ".hidden", "a b", "-x"}) {
    RunData data = example_run("dense", 0, 3.0);
    data.info.name = name;
    write_run_file(folder.path() / "run.h5", data);
    REQUIRE_THROWS_WITH(ResultsFile(folder.path() / "run.h5"),
                        Contains("'" + name + "', which is no name of a run"));
  }
}

TEST_CASE("results files whose columns do not fit are refused", "[results]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "run.h5";
  write_run_file(path, example_run("dense", 0, 3.0));
  const hdf5::Group whole = hdf5::Reader(path).group();
  hdf5::Group broken = whole;
  hdf5::Dataset& status = named(named(broken.groups, "summary").datasets, "status");
  status.values = std::vector<std::uint8_t>{1, 1};
  status.shape = {2};
  status.dimensions = {"other"};
  hdf5::write_file(path, broken);
  REQUIRE_THROWS_WITH(ResultsFile(path), Contains("1 runs and 2 values of status"));

  broken = whole;
  hdf5::Group& eval = named(named(named(broken.groups, "runs").groups, "dense-s0").groups, "eval");
  hdf5::Dataset& tokens = named(eval.datasets, "tokens");
  tokens.values = std::vector<std::int64_t>{1};
  tokens.shape = {1};
  tokens.dimensions = {"other"};
  hdf5::write_file(path, broken);
  REQUIRE_THROWS_WITH(ResultsFile(path).series("dense-s0", "eval/loss"), Contains("5 steps, 1 tokens"));
}
