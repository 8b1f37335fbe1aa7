// Exact parameters, products and memory of a model, without allocating a weight. An experiment's model and a
// published architecture fill the same Tally, so both are totalled by the same code.
//
// One multiply-add is 2 FLOPs. Matrix products only: norms, softmax, biases, lookups, convolutions and scans
// are parameters or nothing, but no FLOPs. Training = 3 x forward (one forward, two products backward).
#pragma once

#include "core/module.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

// The rows of the table, in its order. `mamba` is there only for models that have such layers.
inline constexpr std::array<std::string_view, 9> kModuleGroups{
    "embedding", "attention", "mamba", "router", "experts", "shared_experts", "dense_ffn", "norm", "head"};

// One row: what all modules of one group hold and cost together.
struct ModuleRow {
  std::string group;
  std::int64_t params_total = 0;
  std::int64_t params_active = 0;        // a token: the chosen experts only
  std::int64_t product_flops = 0;        // a token, forward; without attention scores
  std::int64_t flops_if_all_active = 0;  // the same if every expert ran on every token
};

struct Accounting {
  std::vector<ModuleRow> modules;  // groups that have parameters or products, in the order of kModuleGroups
  Index context = 0;               // positions that attention looks at

  std::int64_t total = 0;
  // Parameters that a token uses, in the three conventions of published figures.
  std::int64_t active_all = 0;
  std::int64_t active_without_input_embedding = 0;  // without the input table where it is not also the head
  std::int64_t active_without_embeddings = 0;       // without embedding tables and head
  std::int64_t experts_routed_total = 0;

  std::int64_t product_flops = 0;  // a token, forward; products, without attention scores
  // Scores and values over `context`: the full square, and what a causal mask leaves (half, in the layers
  // that have one). Absent where the cost of a token is not defined by one context (encoder-decoder models).
  std::optional<std::int64_t> attention_flops_full;
  std::optional<std::int64_t> attention_flops_causal;
  std::int64_t ffn_flops = 0;                // experts, shared experts and dense FFNs, without routers
  std::int64_t ffn_flops_if_all_active = 0;  // the same if every expert ran on every token
  std::int64_t kv_cache_scalars_per_token = 0;

  std::vector<std::string> notes;  // what a reader must know of these figures

  double active_compute_ratio() const;    // ffn_flops / ffn_flops_if_all_active; 1 without an FFN
  double active_parameter_ratio() const;  // active_all / total
  // Of a token: products, and attention over the full square (where that is defined).
  std::int64_t forward_flops() const { return product_flops + attention_flops_full.value_or(0); }
  std::int64_t forward_flops_causal() const { return product_flops + attention_flops_causal.value_or(0); }
  std::int64_t training_flops() const { return 3 * forward_flops(); }
  std::int64_t training_flops_causal() const { return 3 * forward_flops_causal(); }
  std::int64_t bytes_weights_float32() const { return 4 * total; }
  std::int64_t bytes_weights_bfloat16() const { return 2 * total; }
  // Weights, gradients and the two moments of Adam, all float32.
  std::int64_t bytes_training_float32() const { return 16 * total; }
  std::int64_t kv_cache_bytes_per_token_bfloat16() const { return 2 * kv_cache_scalars_per_token; }

  // Conventions in words, to be printed and stored with the figures.
  static const std::vector<std::pair<std::string, std::string>>& conventions();
};

// What a parameter is to the conventions of active parameters.
enum class TableRole { none, input_table, position_table, head };

// The product and the sum of counts. Error where they do not fit into 64 bits.
std::int64_t product_of(std::initializer_list<std::int64_t> factors);
std::int64_t sum_of(std::initializer_list<std::int64_t> terms);

// A sum of size * chosen / total terms that loses no digit.
class ExactSum {
 public:
  void add(std::int64_t size, Share share = {});
  // The sum, rounded to the nearest integer where shares do not add up to one.
  std::int64_t value() const;

 private:
  struct Part {
    Index total;
    std::int64_t sum;  // in units of 1 / total
  };
  std::vector<Part> parts_;
};

// Collects parameters and products, group by group.
class Tally {
 public:
  explicit Tally(Index context);

  Index context() const { return context_; }
  // `copies` parameters of `size` numbers each; `active` is the share of tokens that reaches each of them.
  void parameters(std::string_view group, std::int64_t size, Index copies = 1, Share active = {},
                  TableRole role = TableRole::none);
  // `copies` products (in) x (out, in) for `rows` rows a token.
  void product(std::string_view group, Index out, Index in, Index copies = 1, Share rows = {});
  // Scores of heads that are `score_width` wide together and values that are `value_width` wide, per token.
  void attention(Index score_width, Index value_width, bool causal, Index layers = 1);
  void kv_cache(std::int64_t scalars_per_token) {
    kv_cache_scalars_ = sum_of({kv_cache_scalars_, scalars_per_token});
  }
  // The model has no cost per token that one context defines.
  void attention_undefined() { attention_defined_ = false; }
  // The table of the input embedding is also the head's weight.
  void tied() { tied_ = true; }
  void note(std::string text) { notes_.push_back(std::move(text)); }

  Accounting finish() const;

 private:
  struct Row {
    std::int64_t params_total = 0;
    ExactSum params_active;
    ExactSum multiply_adds;
    std::int64_t multiply_adds_if_all_active = 0;
  };
  Row& row(std::string_view group);

  Index context_;
  std::array<Row, kModuleGroups.size()> rows_;
  std::int64_t input_table_ = 0;
  std::int64_t position_table_ = 0;
  std::int64_t head_ = 0;
  std::int64_t attention_full_ = 0;    // FLOPs a token
  std::int64_t attention_causal_ = 0;  // FLOPs a token
  std::int64_t kv_cache_scalars_ = 0;
  bool tied_ = false;
  bool attention_defined_ = true;
  std::vector<std::string> notes_;
};

// Counts what the modules of a model declare in visit(). Storage is not needed. `context` is the length of
// its sequences.
Accounting account(Module& model, Index context);

}  // namespace moelab
