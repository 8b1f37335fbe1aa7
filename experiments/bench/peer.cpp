#include "experiments/bench/peer.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <memory>

#include <nlohmann/json.hpp>

namespace moelab::bench {

namespace {

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The JSON that a script prints.
nlohmann::json run_script(const Options& options, const std::string& script, const std::string& arguments) {
  const std::string command =
      fmt::format("{} {} {}", quoted(options.peer), quoted(options.peer_scripts + "/" + script), arguments);
  FILE* pipe = popen(command.c_str(), "r");
  require(pipe != nullptr, "[bench] cannot run {}", command);
  std::string output;
  std::array<char, 4096> part{};
  while (const std::size_t size = std::fread(part.data(), 1, part.size(), pipe)) {
    output.append(part.data(), size);
  }
  const int status = pclose(pipe);
  require(status == 0, "[bench] {} failed with status {}; is PyTorch installed there?", command, status);
  const nlohmann::json json = nlohmann::json::parse(output, nullptr, false);
  require(!json.is_discarded(), "[bench] {} printed no JSON: {}", command, output);
  return json;
}

}  // namespace

double PeerLayers::gflops(const LayerShape& shape, gemm::Precision precision, const std::string& pass) const {
  const auto found = speeds_.find(key(shape, name_of(precision), pass));
  return found == speeds_.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

void PeerLayers::add(const std::string& key, double gflops) {
  double& best = speeds_[key];
  best = std::max(best, gflops);
}

std::string PeerLayers::key(const LayerShape& shape, const std::string& precision, const std::string& pass) {
  return fmt::format("{} {} {}", shape.name(), precision, pass);
}

void run_layer_peer(const Options& options, PeerLayers& peer) {
  if (options.peer.empty()) return;
  const nlohmann::json json =
      run_script(options, "moe_layer_torch.py", fmt::format("--json --threads {}", parallel::threads()));
  for (const nlohmann::json& row : json.at("rows")) {
    const LayerShape shape{row.at("tokens"), row.at("d_model"), row.at("d_ff"), row.at("num_experts"),
                           row.at("top_k")};
    peer.add(PeerLayers::key(shape, row.at("precision"), "forward"), row.at("forward_gflops"));
    peer.add(PeerLayers::key(shape, row.at("precision"), "both"), row.at("both_gflops"));
  }
}

double run_train_peer(const Options& options, const DecoderShape& shape, gemm::Precision precision,
                      bool is_moe) {
  if (options.peer.empty()) return std::numeric_limits<double>::quiet_NaN();
  const std::string arguments = fmt::format(
      "--threads {} --ffn {} --precision {} --d_model {} --layers {} --heads {} --d_ff {} --vocab {} "
      "--seq_len {} --batch {}",
      parallel::threads(), is_moe ? "moe" : "dense", name_of(precision), shape.d_model, shape.num_layers,
      shape.num_heads, shape.d_ff, shape.vocab_size, shape.seq_len, shape.batch);
  const nlohmann::json json = run_script(options, "train_decoder_torch.py", arguments);
  return json.at("step_ms").get<double>() / 1e3;
}

}  // namespace moelab::bench
