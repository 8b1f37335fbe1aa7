#include "experiments/cli/templates.hpp"

namespace moelab::cli {

namespace {

constexpr std::string_view kMinimal = R"(# yaml-language-server: $schema=./moelab.schema.json
# Question: does a small decoder learn this text at all?
# Run time: well under a minute on 2 cores.
version: 1
name: minimal

data:
  kind: text
  seq_len: 64
  domains:                       # losses are reported for each
    - {name: cpp, path: "/usr/include/c++/*/bits/*.h", package: g++}

model:
  kind: decoder
  d_model: 64
  num_layers: 2
  num_heads: 4
  ffn: {kind: dense, activation: swiglu, d_ff: 176}

train:
  max_tokens: 200_000
  batch_tokens: 1024             # tokens in one optimizer step
  optimizer: {lr: 3e-3}

eval: {every_tokens: 50_000, max_tokens: 16_384}
)";

constexpr std::string_view kDenseVsMoe = R"(# yaml-language-server: $schema=./moelab.schema.json
# Question: does a mixture of 8 experts, 2 of them active, beat a dense FFN of the same compute?
# Expected: about 0.04 nats less than dense at this length, which three seeds do not settle yet; the round-robin
# control, with as many parameters, is far behind.
# Run time: minutes on 2 cores; more text and more tokens say more.
version: 1
name: dense_vs_moe
description: Does an 8-expert top-2 mixture beat a dense FFN at equal active compute?
seeds: [0, 1, 2]                 # every variant is run with each; the spread is part of the answer

data:
  kind: text
  seq_len: 128
  domains:                       # losses and routing are reported for each
    - {name: cpp,   path: "/usr/include/c++/*/bits/*.h", package: g++}
    - {name: perl,  path: "/usr/lib/*/perl-base/**/*.pm", package: perl-base}

model:
  kind: decoder
  d_model: 128
  num_layers: 4
  num_heads: 4
  ffn: {kind: dense, activation: swiglu, d_ff: 344}

train:
  max_tokens: 1_000_000
  batch_tokens: 4096
  optimizer: {kind: adamw, lr: 3e-3, weight_decay: 0.1}
  schedule: {kind: cosine, warmup_tokens: 100_000, min_lr_ratio: 0.1}
  grad_clip: 1.0

eval: {every_tokens: 200_000, max_tokens: 32_768}

variants:                        # each is a patch on what stands above
  dense: {}
  moe_e8k2:
    model.ffn:                   # another kind: replaces the dense FFN whole
      kind: moe
      experts: {count: 8, activation: swiglu, d_ff: 172}   # 2 x 172 = the dense width
      router: {kind: top_k, top_k: 2, scale: 2.0}   # each of the two with its full weight
      losses: {load_balance: 0.01, z: 0.001}
  round_robin:                   # control: the same parameters, a router that knows nothing
    model.ffn:
      kind: moe
      experts: {count: 8, activation: swiglu, d_ff: 172}
      router: {kind: round_robin, top_k: 2, scale: 2.0}

compare: {baseline: dense, match: active_flops, tolerance: 0.02}
)";

constexpr std::string_view kSweep = R"(# yaml-language-server: $schema=./moelab.schema.json
# Question: which learning rate suits each variant? (Compare variants only at the best of their own.)
# Run time: minutes on 2 cores.
version: 1
name: sweep
seeds: [0]

data:
  kind: text
  seq_len: 64
  domains:
    - {name: cpp, path: "/usr/include/c++/*/bits/*.h", package: g++}

model:
  kind: decoder
  d_model: 64
  num_layers: 2
  num_heads: 4
  ffn: {kind: dense, activation: swiglu, d_ff: 176}

train:
  max_tokens: 300_000
  batch_tokens: 1024
  optimizer: {lr: 3e-3}

variants:
  dense: {}
  moe:
    model.ffn:
      kind: moe
      experts: {count: 8, activation: swiglu, d_ff: 88}
      router: {kind: top_k, top_k: 2}
      losses: {load_balance: 0.01}

sweep:
  grid:                          # every combination of these, for every variant
    train.optimizer.lr: [1e-3, 3e-3, 1e-2]
  zip:                           # gone through together, for the variants of `only`
    model.ffn.experts.count: [8, 16]
    model.ffn.experts.d_ff: [88, 44]
    model.ffn.router.top_k: [2, 4]
    model.ffn.router.scale: [2.0, 4.0]      # each of the chosen with its full weight
    only: [moe]
)";

constexpr std::string_view kScaling = R"(# yaml-language-server: $schema=./moelab.schema.json
# Question: how does the loss fall with model width, dense and mixture, at equal active compute?
# Run time: tens of minutes on 2 cores; cut max_tokens for a first look.
version: 1
name: scaling
seeds: [0, 1]

data:
  kind: text
  seq_len: 128
  domains:
    - {name: cpp, path: "/usr/include/c++/*/bits/*.h", package: g++}

model:
  kind: decoder
  d_model: 64
  num_layers: 4
  num_heads: 4
  ffn: {kind: dense, activation: swiglu, d_ff: 176}

train:
  max_tokens: 1_000_000
  batch_tokens: 4096
  optimizer: {lr: 3e-3}
  schedule: {kind: cosine, warmup_tokens: 100_000}

variants:
  dense: {}
  moe_e8k2:
    model.ffn:
      kind: moe
      experts: {count: 8, activation: swiglu, d_ff: 88}
      router: {kind: top_k, top_k: 2, scale: 2.0}
      losses: {load_balance: 0.01}

sweep:
  list:                          # one point each; widths grow together
    - {model.d_model: 64,  model.ffn.d_ff: 176, train.optimizer.lr: 4e-3, only: [dense]}
    - {model.d_model: 96,  model.ffn.d_ff: 264, train.optimizer.lr: 3e-3, only: [dense]}
    - {model.d_model: 128, model.ffn.d_ff: 352, train.optimizer.lr: 2e-3, only: [dense]}
    - {model.d_model: 64,  model.ffn.experts.d_ff: 88,  train.optimizer.lr: 4e-3, only: [moe_e8k2]}
    - {model.d_model: 96,  model.ffn.experts.d_ff: 132, train.optimizer.lr: 3e-3, only: [moe_e8k2]}
    - {model.d_model: 128, model.ffn.experts.d_ff: 176, train.optimizer.lr: 2e-3, only: [moe_e8k2]}

compare: {baseline: dense, match: active_flops}
)";

}  // namespace

const std::vector<Template>& templates() {
  static const std::vector<Template> all = {
      {"minimal", "one dense decoder, the fewest keys", kMinimal},
      {"dense-vs-moe", "variants, seeds, a control and a comparison", kDenseVsMoe},
      {"sweep", "grid and zip over hyper-parameters", kSweep},
      {"scaling", "a list of sizes, for a curve", kScaling},
  };
  return all;
}

}  // namespace moelab::cli
