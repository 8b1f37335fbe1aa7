#include "moe/losses.hpp"

#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/gather.hpp"
#include "core/ops/normalise.hpp"
#include "core/ops/reduce.hpp"
#include "core/ops/softmax.hpp"
#include "moe/routers/selection.hpp"

#include <numeric>
#include <string_view>

namespace moelab::moe {

namespace {

constexpr double kEpsilon = 1e-20;  // keeps log and division finite; far below rounding elsewhere

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// The rows of real tokens, of an (N, .) variable.
Variable real_rows(const Variable& x, const std::vector<Index>& tokens) {
  return static_cast<Index>(tokens.size()) == x.rows() ? x : ops::gather_rows(x, tokens);
}

// Var / mean^2 of the entries of a row, with the population variance.
Variable squared_cv(const Variable& row) {
  const Variable mean = ops::mean(row);
  return ops::divide(ops::mean(ops::square(ops::subtract(row, mean))), ops::square(mean));
}

// Row `row` of W gets E f_e * factor.
void set_balance_row(Matrix& w, Index row, std::span<const std::int64_t> counts, double factor) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  if (total == 0) return;
  for (Index e = 0; e < w.cols(); ++e) {
    w(row, e) = static_cast<Scalar>(static_cast<double>(w.cols()) * factor *
                                    static_cast<double>(counts[at(e)]) / total);
  }
}

class Losses {
 public:
  explicit Losses(const LossInput& input) : in_(input), tokens_(real_tokens(input.batch)) {
    if (in_.routing.scores.defined()) {
      p_ = ops::row_normalise_sum(real_rows(in_.routing.scores, tokens_), kEpsilon);
    }
  }

  // sum_t sum_e W_te p_te, where W_te = E f_e / tokens holds all that is constant.
  Variable load_balance(const std::string& scope) const {
    const auto n = static_cast<double>(tokens_.size());
    Matrix w = Matrix::Zero(p_.rows(), p_.cols());
    if (scope == "sequence") {
      set_sequence_weights(w);
    } else {
      std::vector<std::int64_t> own = count_choices(in_.routing.choices, in_.num_experts);
      const bool whole_step = scope == "global" && !in_.step_counts.empty();
      const std::span<const std::int64_t> counts =
          whole_step ? in_.step_counts : std::span<const std::int64_t>(own);
      for (Index r = 0; r < w.rows(); ++r) set_balance_row(w, r, counts, 1 / n);
    }
    return ops::sum(ops::multiply(p_, Variable(std::move(w))));
  }

  Variable z() const {
    return ops::mean(ops::square(ops::row_log_sum_exp(real_rows(in_.routing.logits, tokens_))));
  }

  Variable importance_cv2() const { return squared_cv(ops::column_sum(p_)); }

  Variable load_cv2(Index top_k) const;

  Variable entropy() const {
    const Variable mean = ops::column_mean(p_);
    return ops::sum(ops::multiply(mean, ops::log(ops::add_constant(mean, kEpsilon))));
  }

  Variable expert_diversity() const;

 private:
  void set_sequence_weights(Matrix& w) const {
    const Index length = in_.batch.seq_len;
    std::vector<Index> real_in_sequence(at(in_.batch.num_sequences), 0);
    for (const Index t : tokens_) ++real_in_sequence[at(t / length)];
    double sequences = 0;
    for (const Index n : real_in_sequence) sequences += n > 0 ? 1 : 0;

    std::vector<std::int64_t> counts;
    for (std::size_t r = 0; r < tokens_.size(); ++r) {
      const Index sequence = tokens_[r] / length;
      if (r == 0 || tokens_[r - 1] / length != sequence) counts = sequence_counts(sequence);
      set_balance_row(w, static_cast<Index>(r), counts,
                      1 / (sequences * static_cast<double>(real_in_sequence[at(sequence)])));
    }
  }

  std::vector<std::int64_t> sequence_counts(Index sequence) const {
    const Choices& choices = in_.routing.choices;
    std::vector<std::int64_t> counts(at(in_.num_experts), 0);
    const Index end = choices.offsets[at((sequence + 1) * in_.batch.seq_len)];
    for (Index c = choices.offsets[at(sequence * in_.batch.seq_len)]; c < end; ++c) {
      ++counts[at(choices.expert_of[at(c)])];
    }
    return counts;
  }

  const LossInput& in_;
  std::vector<Index> tokens_;  // real ones
  Variable p_;                 // (real tokens, E) scores of each token divided by their sum
};

// The probability that expert e would be chosen again if its own noise were drawn anew: its noise-free logit
// against the threshold that it has to pass, the k-th best of the other experts.
Variable Losses::load_cv2(Index top_k) const {
  const Variable z = real_rows(in_.routing.logits, tokens_);
  const ConstMatrixView values = z.value();
  std::vector<Index> rows(tokens_.size());
  std::iota(rows.begin(), rows.end(), Index{0});
  std::vector<Index> kth(rows.size());
  std::vector<Index> next(rows.size());
  Matrix chosen = Matrix::Zero(z.rows(), z.cols());
  std::vector<std::int32_t> best(at(top_k + 1));
  for (Index r = 0; r < z.rows(); ++r) {
    top_k_of(values.row(r).data(), z.cols(), top_k + 1, best.data());
    kth[at(r)] = best[at(top_k - 1)];
    next[at(r)] = best[at(top_k)];
    const Index t = tokens_[at(r)];
    const Choices& choices = in_.routing.choices;
    for (Index c = choices.offsets[at(t)]; c < choices.offsets[at(t + 1)]; ++c) {
      chosen(r, choices.expert_of[at(c)]) = 1;
    }
  }
  const Variable if_chosen = ops::multiply(Variable(chosen), ops::gather_entries(z, rows, next));
  const Variable if_not =
      ops::multiply(Variable(Matrix(1 - chosen.array())), ops::gather_entries(z, rows, kth));
  const Variable distance =
      ops::subtract(real_rows(in_.routing.clean_logits, tokens_), ops::add(if_chosen, if_not));
  const Variable load = ops::normal_cdf(ops::divide(distance, real_rows(in_.routing.noise_std, tokens_)));
  return squared_cv(ops::column_sum(load));
}

// With outputs divided by their length, the sum over pairs is (|sum|^2 - number of outputs that are not 0)
// / 2.
Variable Losses::expert_diversity() const {
  const Variable unit = ops::row_normalise(in_.slots);
  const RoutingPlan& plan = in_.plan;
  const Variable sums = ops::scatter_rows(unit, plan.token_of_slot, plan.num_tokens);
  Matrix nonzero = Matrix::Zero(plan.num_tokens, 1);
  for (Index s = 0; s < plan.num_slots(); ++s) {
    if (!unit.value().row(s).isZero(0)) nonzero(plan.token_of_slot[at(s)], 0) += 1;
  }
  Matrix per_pair = Matrix::Zero(plan.num_tokens, 1);
  double counted = 0;
  for (Index t = 0; t < plan.num_tokens; ++t) {
    const Index k = plan.choice_offsets[at(t + 1)] - plan.choice_offsets[at(t)];
    if (k < 2) continue;
    per_pair(t, 0) = static_cast<Scalar>(1.0 / static_cast<double>(k * (k - 1)));
    counted += 1;
  }
  if (counted == 0) return Variable(Matrix::Zero(1, 1));
  const Variable pairs = ops::subtract(ops::row_sum(ops::square(sums)), Variable(std::move(nonzero)));
  return ops::scale(ops::sum(ops::multiply(pairs, Variable(std::move(per_pair)))), 1 / counted);
}

}  // namespace

void LossConfig::fields(FieldVisitor& v) {
  v("weight", weight, {.help = "Factor of the loss; 0: off", .required = true, .shorthand = true});
}

void LoadBalanceConfig::fields(FieldVisitor& v) {
  v("weight", weight, {.help = "Factor of the loss; 0: off", .min = 0, .required = true, .shorthand = true});
  v("scope", scope,
    {.help = "What the load is counted over: the micro-batch, each sequence, or the whole optimizer step",
     .choices = {"batch", "sequence", "global"}});
}

void LossesConfig::fields(FieldVisitor& v) {
  v("load_balance", load_balance, {.help = "E sum_e f_e P_e; 1 at perfect balance"});
  v("z", z, {.help = "Mean of (logsumexp z)^2: keeps logits small"});
  v("importance_cv2", importance_cv2, {.help = "CV^2 of the experts' summed scores; 0 at perfect balance"});
  v("load_cv2", load_cv2, {.help = "CV^2 of the smooth load of noisy_top_k; 0 at perfect balance"});
  v("entropy", entropy, {.help = "Minus the entropy of the mean score; -log E at perfect balance"});
  v("expert_diversity", expert_diversity, {.help = "Mean pairwise cosine of a token's expert outputs"});
}

std::vector<std::string> LossesConfig::names() const {
  std::vector<std::string> all;
  const auto add = [&](std::string name, double weight) {
    if (weight != 0) all.push_back(std::move(name));
  };
  add("load_balance", load_balance.weight);
  add("z", z.weight);
  add("importance_cv2", importance_cv2.weight);
  add("load_cv2", load_cv2.weight);
  add("entropy", entropy.weight);
  add("expert_diversity", expert_diversity.weight);
  return all;
}

void LossesConfig::check(FieldVisitor& v, const RouterTraits& router, Index num_experts) const {
  const auto needs = [&](bool given, double weight, std::string_view name, std::string_view what) {
    v.check(weight == 0 || given, fmt::format("losses.{}", name), fmt::format("this router has no {}", what));
  };
  needs(router.has_scores, load_balance.weight, "load_balance", "scores to balance");
  needs(router.has_logits, z.weight, "z", "logits");
  needs(router.has_scores, importance_cv2.weight, "importance_cv2", "scores to balance");
  needs(router.has_scores, entropy.weight, "entropy", "scores to balance");
  needs(router.has_noise, load_cv2.weight, "load_cv2", "noise; use noisy_top_k");
  v.check(load_cv2.weight == 0 || router.by_logits, "losses.load_cv2",
          "the smooth load compares noisy logits, which groups and expert_bias do not choose by; leave out "
          "groups and expert_bias, or the loss");
  v.check(load_cv2.weight == 0 || router.choices_per_token < num_experts, "losses.load_cv2",
          "every expert is chosen: there is no load to balance");
  v.check(expert_diversity.weight == 0 || router.choices_per_token > 1, "losses.expert_diversity",
          "needs tokens with at least two experts");
}

std::vector<AuxiliaryLoss> auxiliary_losses(const LossesConfig& config, const LossInput& input) {
  std::vector<AuxiliaryLoss> losses;
  if (config.names().empty()) return losses;
  const bool no_tokens = real_tokens(input.batch).empty();
  const Losses compute(input);
  const auto add = [&](std::string name, double weight, const auto& value) {
    if (weight == 0) return;
    losses.push_back({std::move(name), weight, no_tokens ? Variable(Matrix::Zero(1, 1)) : value()});
  };
  add("load_balance", config.load_balance.weight,
      [&] { return compute.load_balance(config.load_balance.scope); });
  add("z", config.z.weight, [&] { return compute.z(); });
  add("importance_cv2", config.importance_cv2.weight, [&] { return compute.importance_cv2(); });
  add("load_cv2", config.load_cv2.weight, [&] {
    return compute.load_cv2(input.routing.choices.size() /
                            static_cast<Index>(real_tokens(input.batch).size()));
  });
  add("entropy", config.entropy.weight, [&] { return compute.entropy(); });
  add("expert_diversity", config.expert_diversity.weight, [&] { return compute.expert_diversity(); });
  return losses;
}

}  // namespace moelab::moe
