// What is known of a layer's routing, computed from the records of a batch. Pure functions; nothing here
// affects training.
#pragma once

#include "moe/ffn_block.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace moelab::moe {

// Statistics of one layer over the micro-batches of one step. What cannot be known (no scores, no token) is
// NaN. Over N real tokens and A choices; c_e is the number of choices of expert e before drops, f_e = c_e /
// A, and p the scores of a token divided by their sum.
struct LayerStatistics {
  std::vector<std::int64_t> expert_tokens;   // (E) c_e
  std::vector<std::int64_t> expert_dropped;  // (E) choices lost to capacity
  std::vector<double> probability_mean;      // (E) mean over tokens of p_e; empty without scores
  double router_entropy = 0;                 // mean over tokens of H(p), nat
  double load_cv = 0;                        // standard deviation of c (population) / mean
  double max_violation = 0;                  // (max c - mean c) / mean c (Wang et al. 2024, MaxVio)
  double dead_fraction = 0;                  // experts without a token
  double load_entropy = 0;                   // H(f) / log E; 1 for E = 1
  double top1_weight = 0;                    // mean over tokens with a choice of the largest combine weight
  double margin = 0;                         // mean over tokens of p1 - p2, the two largest; E = 1: p1
  double fraction_dropped = 0;               // of choices
  double fraction_without_expert = 0;        // of tokens: no choice, or none kept
  double active_compute_ratio = 0;           // FLOPs executed / FLOPs if every expert ran on every token
};

LayerStatistics layer_statistics(std::span<const RoutingRecord> records);

// Pairs of experts that are counted, at most: 128 MB of counts, which a run holds several times when it is
// written.
inline constexpr Index kMaxPairs = Index{1} << 24;
// Whether the pairs of so many mixtures with so many experts each, or fewer, are counted.
bool counts_pairs(Index num_mixtures, Index num_experts);

// Counts over an evaluation set for one layer, batch by batch. Choices before drops.
class RoutingCounts {
 public:
  // V = 0 where rows are not tokens. Without pairs no co-activation is counted.
  RoutingCounts(Index num_experts, Index num_domains, Index vocab_size, bool with_pairs = true);

  // ids: (N) or empty; domain_of_token: (N). Padding has no choices and counts nowhere.
  void add(const RoutingRecord& record, std::span<const std::int32_t> ids,
           std::span<const std::int32_t> domain_of_token);

  // (E, E) row-major: tokens that chose both; diagonal: tokens that chose the expert. N_ij / N_i is the share
  // of expert i's tokens that also chose j. Empty where pairs are not counted.
  const std::vector<std::int64_t>& coactivation() const { return coactivation_; }
  // (E, domains) row-major
  const std::vector<std::int64_t>& tokens_by_domain() const { return by_domain_; }
  // Mean over the token ids seen at least `least` times of the share of the id's tokens that chose its most
  // frequent expert (OLMoE, Muennighoff et al. 2024, section 5.4, at expert level). NaN if there is no such
  // id.
  double vocabulary_specialisation(std::int64_t least = 10) const;
  // Mutual information of the expert of a choice and the token id, or the domain; nat. NaN without choices
  // (or ids).
  double information_token() const;
  double information_domain() const;

 private:
  Index num_experts_, num_domains_, vocab_size_;
  std::vector<std::int64_t> coactivation_;
  std::vector<std::int64_t> by_domain_;
  std::map<std::int32_t, std::map<std::int32_t, std::int64_t>> by_id_;  // choices of each expert that has any
  std::map<std::int32_t, std::int64_t> tokens_of_id_;
};

// Share of choices that two routings of the same tokens have in common: mean over tokens with a choice in
// `later` of |earlier & later| / |later| (router saturation, OLMoE section 5.1). NaN if no token has a
// choice.
double routing_overlap(const RoutingRecord& earlier, const RoutingRecord& later);

}  // namespace moelab::moe
