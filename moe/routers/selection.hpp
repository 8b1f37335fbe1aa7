// From scores to choices: what the routers that choose experts share. The choice itself is made on plain
// numbers and carries no gradient; the weights are read from the scores on the tape.
#pragma once

#include "core/autograd.hpp"
#include "moe/padding.hpp"
#include "moe/router.hpp"

#include <functional>
#include <string>
#include <vector>

namespace moelab::moe {

// NonFiniteError naming layer and token when a real token has a logit that is NaN or infinite.
void require_finite_logits(const Variable& logits, const TokenBatch& batch, Index layer);

// The k best of n things, in falling order. better(i, j): i is better than j. Of equals the lower
// index comes first.
template <class Better>
void best_of(Index n, Index k, std::int32_t* chosen, const Better& better) {
  // Insertion into the k best so far. An equal one comes later and stays behind.
  Index size = 0;
  for (Index i = 0; i < n; ++i) {
    if (size == k && !better(i, chosen[k - 1])) continue;
    Index place = size < k ? size++ : k - 1;
    for (; place > 0 && better(i, chosen[place - 1]); --place) chosen[place] = chosen[place - 1];
    chosen[place] = static_cast<std::int32_t>(i);
  }
}

// The k largest values, ties to the lowest index, in falling order. values: (E), k <= E. To choose by scores
// that rise with the logits, give the logits: scores underflow to 0 or reach 1 where logits still differ.
void top_k_of(const Scalar* values, Index num_values, Index k, std::int32_t* chosen);
// Where values are equal, the larger logit comes first. logits: (E)
void top_k_of(const Scalar* values, const Scalar* logits, Index num_values, Index k, std::int32_t* chosen);

// Choices of k experts for each real token. choose(t, experts) fills in the k experts of token t, all
// different; it is called from several threads.
Choices choose_fixed(const TokenBatch& batch, Index k,
                     const std::function<void(Index token, std::int32_t* experts)>& choose);

// Puts each token's choices in order of falling score, equal ones of falling logit, ties to the lowest
// expert. scores, logits: (N, E).
void sort_by_score(Choices& choices, In scores, In logits);

// (A, 1): the scores of the choices; `normalize` divides them by their sum over the token (+ 1e-20).
Variable choice_weights(const Variable& scores, const Choices& choices, bool normalize, double scale);

// (A, 1) constant.
Variable uniform_weights(const Choices& choices, double weight);

// The token of each choice, and its expert as an Index. (A)
std::vector<Index> token_of_choice(const Choices& choices);
std::vector<Index> expert_of_choice(const Choices& choices);

// "layers.3.ffn.router": names the random numbers of a router.
std::string router_path(Index layer);

}  // namespace moelab::moe
