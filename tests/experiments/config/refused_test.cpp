// What an experiment file may say field by field, but not together or not at this size.
#include "core/error.hpp"
#include "experiments/config/experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fstream>
#include <string>

using namespace moelab;

namespace {

const std::string kData = "data: {kind: synthetic, num_features: 16, num_targets: 16}\n";
const std::string kTrain = "train: {max_steps: 10, batch_tokens: 32, optimizer: {lr: 1e-3}}\n";
const std::string kBase = "version: 1\n" + kData +
                          "model:\n"
                          "  kind: ffn\n"
                          "  d_model: 16\n"
                          "  num_layers: 1\n"
                          "  ffn: {kind: dense, activation: relu, d_ff: 32}\n" +
                          kTrain;

std::string errors(const std::string& text) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "e.yaml") << text;
  try {
    load_experiment(folder.path() / "e.yaml", {});
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("A router that needs token ids is refused where rows have none") {
  const std::string hash =
      "{kind: moe, experts: {count: 4, activation: relu, d_ff: 8}, router: {kind: hash, top_k: 2}}";
  const std::string dense = "{kind: dense, activation: relu, d_ff: 32}";
  const auto model = [](const std::string& ffn, const std::string& more) {
    return "version: 1\n" + kData + "model:\n  kind: ffn\n  d_model: 16\n  num_layers: 2\n  ffn: " + ffn +
           "\n" + more + kTrain;
  };
  const std::string text = errors(model(hash, ""));
  CHECK(has(text, "model.ffn.router: the router hash chooses by token ids"));
  CHECK(has(text, "data of kind synthetic"));
  CHECK(has(text, "e.yaml:7:"));  // the line of the router
  CHECK(has(errors(model(dense, "  layers: [{at: [1], ffn: " + hash + "}]\n")),
            "model.layers[0].ffn.router: "));
  // A block that no layer uses does no harm.
  CHECK(errors(model(hash, "  layers: [{at: [0, 1], ffn: " + dense + "}]\n")) == "");
}

TEST_CASE("Sizes that no machine holds are refused before anything is made") {
  const auto with = [](const std::string& what, const std::string& instead) {
    std::string text = kBase;
    text.replace(text.find(what), what.size(), instead);
    return errors(text);
  };
  CHECK(has(with("num_layers: 1", "num_layers: 2000000000000"), "at most 10000"));
  CHECK(has(with("d_model: 16", "d_model: 2000000000000"), "at most 1000000"));
  CHECK(has(with("d_ff: 32", "d_ff: 2000000000000"), "at most 1000000"));
  CHECK(has(with("num_features: 16", "num_features: 2000000000000"), "at most 1000000"));
  CHECK(has(with("num_targets: 16", "num_targets: 16, seq_len: 2000000000000"), "at most 10000000"));
  const std::string many =
      "ffn: {kind: moe, experts: {count: 2001, activation: relu, d_ff: 8}, router: {kind: top_k, top_k: 2}}";
  std::string text = kBase;
  text.replace(text.find("num_layers: 1"), 13, "num_layers: 500");
  const std::string ffn = "ffn: {kind: dense, activation: relu, d_ff: 32}";
  text.replace(text.find(ffn), ffn.size(), many);
  CHECK(has(errors(text), "500 layers have 1000500 experts in all; at most 1000000 are possible"));
}
