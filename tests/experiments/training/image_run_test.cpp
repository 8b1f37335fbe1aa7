// An encoder with a router that is not causal learns to tell images apart, from YAML to results.
#include "experiments/results/describe.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/training/run_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cmath>
#include <initializer_list>
#include <string>

using namespace moelab;

namespace {

std::string header(std::initializer_list<int> shape) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const int size : shape)
    bytes += {'\0', '\0', static_cast<char>(size / 256), static_cast<char>(size % 256)};
  return bytes;
}

// Images of 6 by 6 pixels with noise; class c has a bright square in its corner c of three.
void write_images(const TemporaryFolder& folder, const std::string& set, int count) {
  std::string images = header({count, 6, 6}), labels = header({count});
  for (int i = 0; i < count; ++i) {
    const int label = i % 3, top = label == 2 ? 3 : 0, left = label == 1 ? 3 : 0;
    labels += static_cast<char>(label);
    for (int y = 0; y < 6; ++y) {
      for (int x = 0; x < 6; ++x) {
        const bool bright = y >= top && y < top + 3 && x >= left && x < left + 3;
        images += static_cast<char>((bright ? 90 : 0) + (i * 31 + y * 17 + x * 7) * 2654435761U % 100);
      }
    }
  }
  folder.write(set + "-images-idx3-ubyte", images);
  folder.write(set + "-labels-idx1-ubyte", labels);
}

constexpr const char* kExperiment = R"(
version: 1
name: images
data: {kind: images, path: pictures, image_size: 6, patch_size: 3, num_classes: 3, class_names: [left, right, low]}
model:
  kind: encoder
  d_model: 16
  num_layers: 1
  num_heads: 2
  position: learned
  ffn:
    kind: moe
    experts: {kind: ffn, count: 4, activation: gelu, d_ff: 16}
    router: {kind: expert_choice, top_k: 1}
train: {max_steps: 240, batch_tokens: 128, optimizer: {lr: 1e-2}}
eval: {every_tokens: 15360}
)";

}  // namespace

TEST_CASE("an encoder classifies images by patches, with experts that choose", "[images]") {
  const TemporaryFolder folder;
  write_images(folder, "pictures/train", 300);
  write_images(folder, "pictures/t10k", 60);
  const Experiment experiment = load_experiment(folder.write("images.yaml", kExperiment), {});
  RunOptions options;
  options.output_root = folder.path() / "runs";
  options.quiet = true;
  const ExperimentOutcome outcome = run_experiment(experiment, options);
  REQUIRE(outcome.failed.empty());
  const ResultsFile results(outcome.results);
  const std::vector<double> accuracy = results.series("base-s0", "eval/accuracy").value().value;
  REQUIRE(accuracy.size() == 2);
  CHECK(accuracy.back() > 0.9);
  CHECK(results.runs().front().eval_loss_final < 0.5);  // log 3 = 1.10 at the start
  CHECK(std::isnan(results.runs().front().bits_per_byte_final));
  CHECK(results.runs().front().accuracy_final == accuracy.back());
  CHECK_THAT(describe_file(results), Contains("accuracy"));

  std::string yaml = kExperiment;
  yaml.replace(yaml.find("pictures"), 8, "nowhere.");
  CHECK_THROWS_WITH(load_experiment(folder.write("missing.yaml", yaml), {}),
                    Contains("install the package dataset-fashion-mnist"));
}
