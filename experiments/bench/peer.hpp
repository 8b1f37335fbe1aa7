// The same work in PyTorch, timed by its own scripts in another process.
#pragma once

#include "experiments/bench/bench.hpp"

#include <map>
#include <string>

namespace moelab::bench {

// GFLOP/s of PyTorch's layer in its fastest run, which is what its script prints; NaN for what was not
// measured.
class PeerLayers {
 public:
  double gflops(const LayerShape& shape, gemm::Precision precision, const std::string& pass) const;
  // Keeps the higher speed.
  void add(const std::string& key, double gflops);
  static std::string key(const LayerShape& shape, const std::string& precision, const std::string& pass);

 private:
  std::map<std::string, double> speeds_;
};

// Adds what one run of the script finds. Without options.peer nothing is run. Error with the script's output
// when it fails.
void run_layer_peer(const Options& options, PeerLayers& peer);

// Seconds of one training step in PyTorch, its fastest; NaN without options.peer.
double run_train_peer(const Options& options, const DecoderShape& shape, gemm::Precision precision,
                      bool is_moe);

}  // namespace moelab::bench
