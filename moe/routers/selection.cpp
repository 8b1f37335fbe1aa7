#include "moe/routers/selection.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace moelab::moe {

namespace {

constexpr Index kTokenBlock = 256;
constexpr double kNormalizeEpsilon = 1e-20;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

}  // namespace

void require_finite_logits(const Variable& logits, const TokenBatch& batch, Index layer) {
  const ConstMatrixView z = logits.value();
  std::atomic<bool> all_finite = true;
  parallel::for_blocks(z.rows(), kTokenBlock, [&](Index begin, Index end) {
    if (!z.middleRows(begin, end - begin).allFinite()) all_finite = false;
  });
  if (all_finite) return;
  for (Index t = 0; t < z.rows(); ++t) {
    if (!is_real(batch, t) || z.row(t).allFinite()) continue;
    for (Index e = 0; e < z.cols(); ++e) {
      if (std::isfinite(z(t, e))) continue;
      throw NonFiniteError(
          fmt::format("[router] layer {}: the logit of token {} for expert {} is {}", layer, t, e, z(t, e)));
    }
  }
}

void top_k_of(const Scalar* values, Index num_values, Index k, std::int32_t* chosen) {
  best_of(num_values, k, chosen, [values](Index a, Index b) { return values[a] > values[b]; });
}

void top_k_of(const Scalar* values, const Scalar* logits, Index num_values, Index k, std::int32_t* chosen) {
  best_of(num_values, k, chosen, [values, logits](Index a, Index b) {
    return values[a] > values[b] || (values[a] == values[b] && logits[a] > logits[b]);
  });
}

Choices choose_fixed(const TokenBatch& batch, Index k,
                     const std::function<void(Index token, std::int32_t* experts)>& choose) {
  Choices choices;
  choices.offsets.resize(at(batch.size()) + 1, 0);
  for (Index t = 0; t < batch.size(); ++t) {
    choices.offsets[at(t + 1)] = choices.offsets[at(t)] + (is_real(batch, t) ? k : 0);
  }
  choices.expert_of.resize(at(choices.offsets.back()));
  parallel::for_blocks(batch.size(), kTokenBlock, [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      if (is_real(batch, t)) choose(t, choices.expert_of.data() + choices.offsets[at(t)]);
    }
  });
  return choices;
}

void sort_by_score(Choices& choices, In scores, In logits) {
  parallel::for_blocks(choices.num_tokens(), kTokenBlock, [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      const auto first = choices.expert_of.begin();
      std::sort(first + choices.offsets[at(t)], first + choices.offsets[at(t + 1)],
                [&](std::int32_t a, std::int32_t b) {
                  if (scores(t, a) != scores(t, b)) return scores(t, a) > scores(t, b);
                  return logits(t, a) > logits(t, b) || (logits(t, a) == logits(t, b) && a < b);
                });
    }
  });
}

Variable choice_weights(const Variable& scores, const Choices& choices, bool normalize, double scale) {
  const auto factor = static_cast<Scalar>(scale);
  const auto epsilon = static_cast<Scalar>(kNormalizeEpsilon);
  const ConstMatrixView s = scores.value();
  // 1 / (sum of the scores of token t's choices), or 1.
  const auto divisor = [normalize, epsilon](const ConstMatrixView& values, const Choices& c, Index t) {
    Scalar total = 0;
    for (Index i = c.offsets[at(t)]; i < c.offsets[at(t + 1)]; ++i) total += values(t, c.expert_of[at(i)]);
    return normalize ? total + epsilon : Scalar{1};
  };
  Matrix w(choices.size(), 1);
  parallel::for_blocks(choices.num_tokens(), kTokenBlock, [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      const Scalar total = divisor(s, choices, t);
      for (Index i = choices.offsets[at(t)]; i < choices.offsets[at(t + 1)]; ++i) {
        w(i, 0) = factor * s(t, choices.expert_of[at(i)]) / total;
      }
    }
  });
  return Variable::result(std::move(w), {scores}, [=](const Matrix& weights, const Matrix& dw) {
    const ConstMatrixView values = scores.value();
    Matrix ds = Matrix::Zero(values.rows(), values.cols());
    parallel::for_blocks(choices.num_tokens(), kTokenBlock, [&](Index begin, Index end) {
      for (Index t = begin; t < end; ++t) {
        const Index first = choices.offsets[at(t)];
        const Index last = choices.offsets[at(t + 1)];
        const Scalar total = divisor(values, choices, t);
        // d (s_i / total) / d s_j = (delta_ij - s_i / total) / total
        Scalar inner = 0;
        for (Index i = first; normalize && i < last; ++i) inner += dw(i, 0) * weights(i, 0);
        for (Index i = first; i < last; ++i) {
          ds(t, choices.expert_of[at(i)]) = (factor * dw(i, 0) - inner) / total;
        }
      }
    });
    scores.add_grad(std::move(ds));
  });
}

Variable uniform_weights(const Choices& choices, double weight) {
  return Variable(Matrix::Constant(choices.size(), 1, static_cast<Scalar>(weight)));
}

std::vector<Index> token_of_choice(const Choices& choices) {
  std::vector<Index> tokens(at(choices.size()));
  for (Index t = 0; t < choices.num_tokens(); ++t) {
    std::fill(tokens.begin() + choices.offsets[at(t)], tokens.begin() + choices.offsets[at(t + 1)], t);
  }
  return tokens;
}

std::vector<Index> expert_of_choice(const Choices& choices) {
  return {choices.expert_of.begin(), choices.expert_of.end()};
}

std::string router_path(Index layer) { return fmt::format("layers.{}.ffn.router", layer); }

}  // namespace moelab::moe
