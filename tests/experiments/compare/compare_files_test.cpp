#include "experiments/compare/compare_files.hpp"

#include "core/error.hpp"
#include "experiments/compare/render.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

using namespace moelab;

namespace {

// Losses at steps 1 to 5 (100 tokens each, 1.8e6 training FLOPs each) are final + 1.6, 0.6, 0.2667, 0.1, 0.
std::vector<ResultsFile> example_files(const TemporaryFolder& folder) {
  std::vector<ResultsFile> files;
  files.emplace_back(write_example_results(folder.path()));
  return files;
}

}  // namespace

TEST_CASE("comparison of a file reads the metric where it is asked", "[compare]") {
  const TemporaryFolder folder;
  const std::vector<ResultsFile> files = example_files(folder);
  CompareOptions options;
  const auto mean_of_moe = [&] { return compare_files(files, options).variants.at(1).mean; };
  const double offset = 0.05 / 3;  // of the seeds: 0, 0.01, 0.04
  CHECK_THAT(mean_of_moe(), WithinAbs(2.8 + offset, 1e-12));
  options.at = parse_at("tokens=150");  // halfway from step 1 to step 2
  CHECK_THAT(mean_of_moe(), WithinAbs(2.8 + offset + 1.1, 1e-12));
  options.at = parse_at("flops=2.7e6");  // the same place
  CHECK_THAT(mean_of_moe(), WithinAbs(2.8 + offset + 1.1, 1e-12));
  options.at = parse_at("tokens=1000");  // no run came so far
  CHECK(compare_files(files, options).variants.at(1).seeds.empty());
  options.at = parse_at("best");
  options.metric = "eval/loss/prose";
  CHECK_THAT(mean_of_moe(), WithinAbs(2.7 + offset, 1e-12));
  options.metric = "moe/none";
  REQUIRE_THROWS_WITH(compare_files(files, options), Contains("moe/none"));
  for (const char* text : {"tokens", "tokens=x", "tokens=1e6x", "tokens=-1", "steps=3", ""}) {
    INFO(text);
    CHECK_THROWS_AS(parse_at(text), ConfigError);
  }
}

TEST_CASE("comparison of the best is the lowest loss, the highest accuracy, and nothing of others",
          "[compare]") {
  const TemporaryFolder folder;
  RunData run = example_run("dense", 0, 3, 3);
  const double losses[] = {3, 2, 4}, accuracies[] = {0.25, 0.75, 0.5};
  for (std::size_t i = 0; i < 3; ++i) {
    run.eval.at(i).loss = losses[i];
    run.eval.at(i).accuracy = accuracies[i];
  }
  write_run_file(folder.path() / "run.h5", run);
  const ResultsFile file(folder.path() / "run.h5");
  CompareOptions options;
  options.at = parse_at("best");
  CHECK(compare_files({&file, 1}, options).variants.at(0).mean == 2);
  options.metric = "eval/accuracy";
  const Comparison c = compare_files({&file, 1}, options);
  CHECK(c.variants.at(0).mean == 0.75);
  CHECK(c.at == "at its highest");
  options.metric = "train/lr";
  CHECK_THROWS_WITH(compare_files({&file, 1}, options), Contains("best has no meaning for train/lr"));
  options = {};
  options.at = parse_at("tokens=1e9");
  CHECK_THAT(render(compare_files({&file, 1}, options), TableFormat::table),
             Contains("has a value of eval/loss at 1.00G tokens"));
}

TEST_CASE("comparison of a file measures compute at equal loss", "[compare]") {
  const TemporaryFolder folder;
  const std::vector<ResultsFile> files = example_files(folder);
  const Comparison c = compare_files(files, {});
  // The mixture is 0.2 lower everywhere; the dense end is reached between steps 3 (+0.0667) and 4 (-0.1).
  const double share = (1.0 / 15) / (1.0 / 6);
  const double cost = std::exp(std::lerp(std::log(3.0), std::log(4.0), share));
  REQUIRE(c.variants[1].compute_efficiency.values.size() == 3);
  CHECK_THAT(c.variants[1].compute_efficiency.mean, WithinAbs(5 / cost, 1e-9));
  CHECK_THAT(c.variants[1].wall_clock_efficiency.mean, WithinAbs(5 / cost, 1e-9));
  CHECK(c.variants[0].compute_efficiency.values.empty());
}

TEST_CASE("comparison of a file measures parameters at equal loss", "[compare]") {
  const TemporaryFolder folder;
  write_example_results(folder.path());
  // The mixture: loss 2.8 + 0.01 seed^2, 5000 parameters, 3000 active. Dense: 3.0 with 5000 parameters (3000
  // active, as the example counts), and here a larger one that is lower by 0.4.
  std::vector<std::filesystem::path> paths;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    RunData large = example_run("large", seed, 2.6 + 0.01 * static_cast<double>(seed * seed));
    large.info.moe_layers.clear();
    large.routing.clear();
    large.statistics = {};
    large.samples = {};
    large.info.accounting.params_total = 20000;
    large.info.accounting.params_active = 12000;
    paths.push_back(folder.path() / (large.info.name + ".h5"));
    write_run_file(paths.back(), large);
  }
  std::vector<ResultsFile> files;
  files.emplace_back(folder.path() / "results.h5");
  const Comparison c = compare_files(files, {});
  CHECK(c.variants[1].is_mixture);
  CHECK(c.variants[1].active_parameter_efficiency.num_not_reached == 3);  // one dense size is no curve
  CHECK_THAT(render(c, TableFormat::table), !Contains("params gain"));

  write_results_file(folder.path() / "large.h5", {}, paths);
  files.emplace_back(folder.path() / "large.h5");
  const Comparison two = compare_files(files, {});
  REQUIRE(two.variants.size() == 3);
  // Halfway between the two losses: twice the smaller size, the same with each seed.
  CHECK_THAT(two.variants[1].active_parameter_efficiency.mean, WithinAbs(2, 1e-9));
  CHECK_THAT(two.variants[1].total_parameter_efficiency.mean, WithinAbs(2, 1e-9));
  CHECK_THAT(two.variants[1].total_parameter_efficiency.t.low, WithinAbs(2, 1e-6));
  CHECK(two.variants[2].total_parameter_efficiency.values.empty());
  CHECK_THAT(render(two, TableFormat::table), Contains("params gain") && Contains("2.00 [2.00, 2.00]"));
}

TEST_CASE("comparison of several files keeps variants of the same name apart", "[compare]") {
  const TemporaryFolder folder;
  std::vector<ResultsFile> files = example_files(folder);
  files.emplace_back(folder.path() / "moe-s0.h5");
  const Comparison c = compare_files(files, {});
  REQUIRE(c.variants.size() == 3);
  CHECK(c.variants[0].label == "dense");
  CHECK(c.variants[1].label == folder.path().filename().string() + ":moe");
  CHECK(c.variants[2].label == "moe-s0:moe");
  CHECK(c.variants[2].delta.num_seeds == 1);
}

TEST_CASE("comparison of files of the same name keeps them apart by their folders", "[compare]") {
  const TemporaryFolder folder;
  std::vector<ResultsFile> files;
  for (const char* name : {"y1", "y2"}) {
    std::filesystem::create_directory(folder.path() / name);
    const std::filesystem::path run = folder.path() / name / "moe.h5";
    // Other seeds, so that nothing but the name could tell that these are two experiments.
    write_run_file(run, example_run("moe", std::string(name) == "y1" ? 0 : 1, 3));
    write_results_file(folder.path() / name / "merged.h5", {}, {run});
    files.emplace_back(folder.path() / name / "merged.h5");
  }
  const Comparison c = compare_files(files, {});
  REQUIRE(c.variants.size() == 2);
  CHECK(c.variants[0].label == "y1/merged:moe");
  CHECK(c.variants[1].label == "y2/merged:moe");
  CompareOptions options;
  options.baseline = "y2/merged:moe";
  CHECK(compare_files(files, options).baseline == 1);
}

TEST_CASE("comparison of a sweep says of each what it is compared with", "[compare]") {
  const TemporaryFolder folder;
  std::vector<std::filesystem::path> paths;
  const auto add = [&](const std::string& variant, const std::string& point, double loss) {
    RunData data = example_run(variant, 0, loss);
    data.info.name += fmt::format("-p{}", paths.size());
    data.info.sweep_point = point;
    paths.push_back(folder.path() / (data.info.name + ".h5"));
    write_run_file(paths.back(), data);
  };
  add("dense", R"({"train.optimizer.lr":"1e-2"})", 3);
  add("dense", R"({"train.optimizer.lr":"1e-3"})", 4);
  add("moe", R"({"train.optimizer.lr":"1e-3","model.ffn.experts.count":"4"})", 3.5);
  add("moe", R"({"train.optimizer.lr":"1e-4","model.ffn.experts.count":"4"})", 5);
  write_results_file(folder.path() / "results.h5", {}, paths);
  const ResultsFile file(folder.path() / "results.h5");

  const Comparison c = compare_file(file);
  const std::string table = render(c, TableFormat::table);
  CHECK_THAT(table, Contains("vs dense (same point)") && Contains("-0.5000") && !Contains("vs dense lr"));
  CHECK_THAT(table, Contains("NOT COMPARED") && Contains("their settings: moe lr=1e-4 count=4."));
  const auto json = nlohmann::json::parse(render(c, TableFormat::json));
  CHECK(json.at("baseline") == "dense");
  CHECK(json.at("variants").at(0).at("baseline") == "dense lr=1e-2");
  CHECK(json.at("variants").at(2).at("baseline") == "dense lr=1e-3");
  CHECK(json.at("variants").at(3).at("baseline").is_null());
  CHECK_THAT(render(c, TableFormat::csv), Contains("variant,baseline,num_seeds") &&
                                              Contains("moe lr=1e-3 count=4,dense lr=1e-3,") &&
                                              Contains("moe lr=1e-4 count=4,,"));
  const auto baselines = file.reader().read<std::string>("variants/baseline");
  CHECK(baselines == std::vector<std::string>{"dense lr=1e-2", "dense lr=1e-3", "dense lr=1e-3", ""});
  CHECK(file.reader().read<double>("variants/delta_vs_baseline")[2] == -0.5);

  CompareOptions one;
  one.baseline = "dense lr=1e-2";
  CHECK_THAT(render(compare_files({&file, 1}, one), TableFormat::table),
             Contains("vs dense lr=1e-2") && !Contains("same point") && !Contains("NOT COMPARED"));
}

TEST_CASE("comparison as text is honest about few seeds", "[compare]") {
  const TemporaryFolder folder;
  std::vector<ResultsFile> files = example_files(folder);
  const std::string three = render(compare_files(files, {}), TableFormat::table);
  CHECK_THAT(three, Contains("-0.2000 [-0.2000, -0.2000]") && Contains("95 % Student-t") &&
                        Contains("2.8167 ± 0.0208"));
  CHECK_THAT(three, !Contains("may be noise"));
  std::vector<ResultsFile> few;
  few.emplace_back(folder.path() / "dense-s0.h5");
  few.emplace_back(folder.path() / "moe-s0.h5");
  const std::string one = render(compare_files(few, {}), TableFormat::table);
  CHECK_THAT(one, Contains("may be noise") && Contains("-0.2000") && !Contains("[-0.2") && !Contains("±  "));
}

TEST_CASE("comparison for programs has every figure", "[compare]") {
  const TemporaryFolder folder;
  const Comparison c = compare_files(example_files(folder), {});
  const auto json = nlohmann::json::parse(render(c, TableFormat::json));
  CHECK(json.at("baseline") == "dense");
  CHECK(json.at("variants").at(1).at("delta").get<double>() == c.variants[1].delta.mean);
  CHECK(json.at("variants").at(0).at("delta").is_null());
  CHECK(json.at("variants").at(1).at("seeds").at(2).at("value").get<double>() == 2.84);
  const std::string csv = render(c, TableFormat::csv);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  CHECK_THAT(render(c, TableFormat::latex), Contains("\\toprule") && Contains("% eval/loss"));
  CHECK_THAT(render(c, TableFormat::markdown), Contains("| variant | eval/loss |"));
  CHECK_THROWS_AS(table_format("xlsx"), ConfigError);
}

TEST_CASE("comparison of losses on other data says that they are", "[compare]") {
  const TemporaryFolder folder;
  std::string checksum;  // of the second variant's last seed
  const auto notes_of = [&](const std::string& data, const std::string& other, const std::string& metric) {
    std::vector<std::filesystem::path> paths;
    for (const auto& [variant, config] : {std::pair{"one", data}, std::pair{"two", other}}) {
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        RunData run = example_run(variant, seed, 3, 3);
        run.info.config_resolved = config;
        const bool is_other = std::string(variant) == "two" && seed == 2;
        if (!checksum.empty()) run.info.provenance.emplace_back("data_crc32", is_other ? checksum : "0a");
        paths.push_back(folder.path() / (run.info.name + ".h5"));
        write_run_file(paths.back(), run);
      }
    }
    write_results_file(folder.path() / "results.h5", {}, paths);
    std::vector<ResultsFile> files;
    files.emplace_back(folder.path() / "results.h5");
    CompareOptions options;
    options.metric = metric;
    return fmt::format("{}", fmt::join(comparison_notes(compare_files(files, options)), "\n"));
  };
  const std::string byte =
      "data: {kind: text, tokenizer: {kind: byte}, seq_len: 8, domains: [{name: a, weight: 1}]}";
  const std::string bpe =
      "data: {kind: text, tokenizer: {kind: bpe, vocab_size: 300}, seq_len: 8, domains: [{name: a, weight: "
      "3}]}";
  const std::string images = "data: {kind: images, image_size: 8}";
  const char* told = "NOT THE SAME DATA: two has other data than one";
  CHECK_THAT(notes_of(byte, bpe, "eval/loss"),
             Contains(told) && Contains("(data.tokenizer.kind, data.tokenizer.vocab_size)") &&
                 Contains("; eval/bits_per_byte does"));
  CHECK_THAT(notes_of(byte, bpe, "eval/bits_per_byte"), !Contains("SAME DATA"));
  CHECK_THAT(notes_of(byte, images, "eval/loss"), Contains(told) && Contains("(data.kind)"));
  CHECK_THAT(notes_of(byte, images, "eval/bits_per_byte"), Contains(told));
  CHECK_THAT(notes_of(byte + "\neval: {max_tokens: 64}", byte + "\neval: {max_tokens: 128}", "eval/loss"),
             Contains("(eval.max_tokens)"));
  CHECK_THAT(notes_of(byte + "\neval: {every_tokens: 64}", byte, "eval/loss"), !Contains("SAME DATA"));
  CHECK_THAT(notes_of(byte, "data: [", "eval/loss"), !Contains("SAME DATA"));
  // The same text may lie elsewhere on another machine; what it holds says more.
  const std::string here = "data: {kind: text, domains: [{name: a, path: [/here/a.txt]}]}";
  const std::string there =
      "data: {kind: text, corpus: /c.yaml, domains: [{name: a, path: [/there/a.txt], package: a}]}";
  CHECK_THAT(notes_of(here, there, "eval/loss"), !Contains("SAME DATA"));
  checksum = "0a";
  CHECK_THAT(notes_of(here, there, "eval/loss"), !Contains("SAME DATA"));
  checksum = "0b";
  CHECK_THAT(notes_of(here, here, "eval/loss"), Contains(told) && Contains("(what the files hold)"));
  CHECK_THAT(notes_of(here, here, "eval/bits_per_byte"), Contains(told));
}
