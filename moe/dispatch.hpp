// Rows to experts and back: gather, experts, combine. Owns no parameters.
//
// The work is cut into tasks of (expert, block of rows), so that one hot expert does not serialise a step.
// Each task gathers its rows into a block that stays in cache and runs the expert on it. A token's outputs
// are added up slot by slot in the order of its choices. Nothing is added to from two tasks, so the bits are
// the same at any number of threads; an expert without rows is not run and its gradients stay exactly zero.
#pragma once

#include "core/autograd.hpp"
#include "core/context.hpp"
#include "moe/expert.hpp"
#include "moe/routing_plan.hpp"

#include <memory>
#include <vector>

namespace moelab::moe {

using Experts = std::vector<std::unique_ptr<Expert>>;

// The outputs of the experts, one row a slot: x (N, d_model) -> (S, d_model). Experts and context outlive the
// backward pass.
Variable run_experts(const Experts& experts, const Variable& x, std::shared_ptr<const RoutingPlan> plan,
                     const ForwardContext& context);

// Every row through one expert: dense FFNs and shared experts. x (N, d_model) -> (N, d_model).
Variable run_expert(Expert& expert, const Variable& x, const ForwardContext& context);

// y_t = sum over the kept choices c of token t of weights_c * slots_(slot of c). weights: (A, 1).
Variable combine(const Variable& slots, const Variable& weights, std::shared_ptr<const RoutingPlan> plan);

// combine(run_experts(...), weights, plan) with the same bits. The gradients of the slots are made block by
// block where they are used, and never exist as a whole.
Variable run_and_combine(const Experts& experts, const Variable& x, const Variable& weights,
                         std::shared_ptr<const RoutingPlan> plan, const ForwardContext& context);

}  // namespace moelab::moe
