// What a model sees of an FFN: dense or mixture, hidden rows in, hidden rows out, with auxiliary losses and
// what is known of the routing. Everything is returned; nothing is left on the object.
#pragma once

#include "core/autograd.hpp"
#include "core/context.hpp"
#include "core/module.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace moelab::moe {

// The tokens behind the rows of a batch. Row t of sequence b is row b * seq_len + t.
struct TokenBatch {
  Index num_sequences = 0;                // B
  Index seq_len = 0;                      // T
  std::span<const std::int32_t> ids;      // (N) token ids; empty where rows are not tokens
  std::span<const std::uint8_t> is_real;  // (N) 0 for padding; empty: all real
  Index size() const { return num_sequences * seq_len; }
};

// One auxiliary loss of one layer. The training loss adds weight * value, averaged over the layers that have
// it.
struct AuxiliaryLoss {
  std::string name;  // load_balance, z, ...
  double weight = 0;
  Variable value;  // (1, 1), without the weight
};

// What a router decided for one batch, for statistics: counts are exact, before and after drops. A padding
// token has no choices. Routers that mix tokens instead of choosing (soft) leave the arrays empty.
struct RoutingRecord {
  Index num_tokens = 0;                 // real tokens
  Index num_experts = 0;                // E, zero and copy experts included
  std::vector<Index> choice_offsets;    // (N + 1) first choice of each token in the arrays below
  std::vector<std::int32_t> expert_of;  // (A) chosen expert, in order of falling weight within a token
  std::vector<Scalar> weight_of;        // (A) combine weight before drops
  std::vector<std::uint8_t> kept;       // (A) 0: dropped by capacity
  std::vector<Scalar> combine_of;       // (A) weight of the expert's output in y; 0 where dropped
  Matrix scores;                        // (N, E) full scores; empty for routers without; padding rows are 0
  Index capacity = 0;                   // rows an expert may take; 0: dropless
  double active_flops = 0;              // FLOPs of the routed and shared experts for this batch, as executed
  double full_flops = 0;                // the same if every expert ran on every real token
};

struct FfnOutput {
  Variable y;  // (N, d_model)
  std::vector<AuxiliaryLoss> losses;
  std::optional<RoutingRecord> routing;  // mixtures only
};

class FfnBlock : public Module {
 public:
  // x: (N, d_model), N = batch.size(). Rows of padding may hold anything, NaN too: they count as zeros, and
  // their gradient is 0.
  virtual FfnOutput forward(const Variable& x, const TokenBatch& batch, const ForwardContext& context) = 0;

  // Whether a loss needs the counts of the whole optimizer step before its first micro-batch (load_balance
  // with scope: global). With several micro-batches a step the trainer then runs all of them once without
  // recording (context.record = false), sums the counts of chosen experts, and hands them to before_step().
  virtual bool needs_step_counts() const { return false; }
  virtual void before_step(std::span<const std::int64_t> /*expert_tokens*/) {}

  // Called once per optimizer step, in training only, with the counts of chosen experts (E) and of real
  // tokens summed over the step's micro-batches: loss-free bias updates and adaptive loss weights live here.
  virtual void after_step(std::span<const std::int64_t> /*expert_tokens*/, std::int64_t /*num_tokens*/) {}

  // 0 for a dense FFN.
  virtual Index num_experts() const { return 0; }
  virtual Index top_k() const { return 0; }
  // False when the output at a position depends on later positions (expert choice, soft, base, ...).
  virtual bool is_causal() const { return true; }
};

}  // namespace moelab::moe
