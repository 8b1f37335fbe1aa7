// A router decides which experts a token goes to, and with what weights. Written on the tape: no derivative
// by hand. Everything it finds out is returned; nothing is kept on the object but parameters and declared
// state.
#pragma once

#include "core/autograd.hpp"
#include "core/context.hpp"
#include "core/fields.hpp"
#include "core/module.hpp"
#include "moe/ffn_block.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace moelab::moe {

// Of a layer, and of all layers of a model: what a tree of modules can hold in memory, and several times the
// 131072 of Shazeer et al. 2017. What counts experts of a token (top_k) has no greater limit, so that
// products with it stay whole numbers of 64 bits.
constexpr Index kMaxExperts = 1'000'000;

// Inputs that only tests and reference files give.
struct RouterProbe {
  const Matrix* noise = nullptr;  // (N, E) standard normal numbers instead of drawn ones
  Variable logits_offset;         // (N, E) added to the logits z: its gradient is that of z
};

struct RouterInput {
  const Variable& x;  // (N, d_model)
  const TokenBatch& batch;
  const ForwardContext& context;
  const RouterProbe& probe;
};

// The experts of each token, in order of falling weight, ties to the lowest expert. A padding token has none.
struct Choices {
  std::vector<Index> offsets;           // (N + 1) where a token's choices start
  std::vector<std::int32_t> expert_of;  // (A)
  Index num_tokens() const { return static_cast<Index>(offsets.size()) - 1; }
  Index size() const { return static_cast<Index>(expert_of.size()); }
};

// Tokens mixed into slots instead of choices (Soft MoE). Expert e owns slots e * slots_per_expert onwards.
struct SlotMixing {
  Index slots_per_expert = 1;
  Variable dispatch;  // (N, E * slots_per_expert) softmax over the tokens of a sequence
  Variable combine;   // (N, E * slots_per_expert) softmax over all slots
};

struct Routing {
  Choices choices;
  Variable weights;  // (A, 1) combine weights, aligned with choices.expert_of
  Variable logits;   // (N, E) z; undefined for routers without
  Variable scores;   // (N, E) s over all experts; undefined for routers without
  // noisy_top_k: z without the noise, and the noise's standard deviation, both divided by the temperature as
  // z is. (N, E)
  Variable clean_logits;
  Variable noise_std;
  Variable pass_through;              // (N, 1) share of x itself in the output; undefined: none (base)
  std::optional<SlotMixing> mixing;   // instead of choices (soft)
  std::vector<AuxiliaryLoss> losses;  // the router's own terms
};

class Router : public Module {
 public:
  // NonFiniteError naming layer and token where a logit of a real token is NaN.
  virtual Routing route(const RouterInput& input) = 0;
  // As FfnBlock::after_step().
  virtual void after_step(std::span<const std::int64_t> /*expert_tokens*/, std::int64_t /*num_tokens*/) {}
};

// What the rest of the layer must know of a kind of router.
struct RouterTraits {
  Index choices_per_token = 0;  // planned: k, or the most that are chosen
  bool fixed_top_k = true;      // every token has exactly that many
  bool has_logits = true;
  bool has_scores = true;  // that can be normalised to a distribution over the experts
  bool has_noise = false;
  bool by_logits = true;    // where there is noise: it chooses by the noisy logits, without groups or bias
  bool needs_ids = false;   // works on rows that are tokens with an id only
  double scale = 1;         // factor on the weights
  bool normalized = false;  // the weights of a token sum to `scale`
  bool causal = true;       // a choice depends on its own token (and earlier ones) alone
};

struct RouterShape {
  Index d_model = 0;
  Index num_experts = 0;
  Index layer = 0;
};

// The options of one kind of router in an experiment file. See docs/adding-a-router.md.
class RouterOptions {
 public:
  virtual ~RouterOptions() = default;
  virtual void fields(FieldVisitor& v) = 0;
  // Conditions that involve the number of experts; paths are relative to the `ffn:` block.
  virtual void check(FieldVisitor& /*v*/, Index /*num_experts*/) const {}
  virtual std::unique_ptr<RouterOptions> clone() const = 0;
  virtual std::unique_ptr<Router> make(const RouterShape& shape) const = 0;
  virtual RouterTraits traits(Index num_experts) const = 0;
  // The rows that an expert gets for each token, for the accounting; `context`: positions of a sequence.
  virtual Share active_share(Index num_experts, Index /*context*/) const {
    return {traits(num_experts).choices_per_token, num_experts};
  }
  // The share of an expert's parameters that is at work for a token: at most 1, also where an expert runs on
  // more rows than there are tokens.
  virtual Share parameter_share(Index num_experts, Index context) const {
    return active_share(num_experts, context);
  }
  // The names of the losses that the router adds of its own.
  virtual std::vector<std::string> own_losses() const { return {}; }
  // For the `granularity` shorthand: as many times more choices.
  virtual void multiply_top_k(Index /*factor*/) {}
};

}  // namespace moelab::moe
