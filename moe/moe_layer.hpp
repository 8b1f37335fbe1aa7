// The mixture-of-experts layer: router, plan, experts, combine, shared experts, losses.
#pragma once

#include "moe/config.hpp"
#include "moe/dispatch.hpp"
#include "moe/ffn_block.hpp"
#include "moe/make_ffn.hpp"
#include "moe/router.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace moelab::moe {

// y_t = sum over the kept choices of w_te f_e(x_t)  [+ pass_through_t x_t]  + g_t sum_i shared_i(x_t),
// with g = 1, or sigmoid(x . gate). Padding rows may hold anything and count as zeros; they get 0 from the
// routed experts.
class MoeLayer final : public FfnBlock {
 public:
  // `config` as MoeConfig::expanded() gives it.
  MoeLayer(const MoeConfig& config, const FfnShape& shape);

  FfnOutput forward(const Variable& x, const TokenBatch& batch, const ForwardContext& context) override;
  // The same with inputs that only tests and reference files give.
  FfnOutput forward(const Variable& x, const TokenBatch& batch, const ForwardContext& context,
                    const RouterProbe& probe);

  void visit(Visitor& visitor) override;
  bool needs_step_counts() const override;
  void before_step(std::span<const std::int64_t> expert_tokens) override;
  void after_step(std::span<const std::int64_t> expert_tokens, std::int64_t num_tokens) override;
  Index num_experts() const override { return static_cast<Index>(experts_.size()); }
  Index top_k() const override { return traits_.choices_per_token; }
  bool is_causal() const override;

  Router& router() { return *router_; }
  // C for a number of real tokens; 0 without a capacity.
  Index capacity(Index num_tokens, bool training) const;

 private:
  // The sigmoid gate of the shared experts; its path is shared.gate.
  class SharedGate : public Module {
   public:
    explicit SharedGate(Index d_model) : weight(1, d_model, Init::normal(0.02)) {}
    void visit(Visitor& visitor) override;
    Parameter weight;
  };

  std::vector<std::uint8_t> kept_choices(const Routing& routing, const TokenBatch& batch, Index capacity,
                                         const ForwardContext& context) const;
  Variable combine_weights(const Routing& routing, const std::vector<std::uint8_t>& kept) const;
  FfnOutput run_choices(const Variable& x, const TokenBatch& batch, const ForwardContext& context,
                        const Routing& routing);
  FfnOutput run_mixing(const Variable& x, const TokenBatch& batch, const ForwardContext& context,
                       const Routing& routing);
  Variable add_shared(const Variable& x, const Variable& y, const ForwardContext& context);
  RoutingRecord make_record(const Routing& routing, const TokenBatch& batch) const;
  void count_flops(RoutingRecord& record, std::span<const Index> rows_of_expert) const;

  MoeConfig config_;
  RouterTraits traits_;
  Index layer_;
  std::unique_ptr<Router> router_;
  Experts experts_;
  Experts shared_;
  std::optional<SharedGate> shared_gate_;
  std::vector<double> expert_flops_;       // a row, by expert
  double shared_flops_ = 0;                // a row, all shared experts
  std::vector<std::int64_t> step_counts_;  // from before_step() until after_step()
};

}  // namespace moelab::moe
