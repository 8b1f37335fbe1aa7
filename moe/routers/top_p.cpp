#include "moe/routers/top_p.hpp"

#include "core/error.hpp"
#include "moe/routers/selection.hpp"

#include <algorithm>
#include <vector>

namespace moelab::moe {

namespace {

class TopPRouter final : public TokenChoiceRouter {
 public:
  TopPRouter(const TopPOptions& options, const RouterShape& shape)
      : TokenChoiceRouter(options.scores, shape),
        p_(static_cast<Scalar>(options.p)),
        max_k_(options.max_k.value_or(shape.num_experts)) {}

 protected:
  Choices choose(const RouterInput& input, In logits, In scores) override {
    Choices choices;
    choices.offsets.push_back(0);
    std::vector<std::int32_t> best(static_cast<std::size_t>(max_k_));
    for (Index t = 0; t < scores.rows(); ++t) {
      if (is_real(input.batch, t)) {
        top_k_of(logits.row(t).data(), logits.cols(), max_k_, best.data());
        Scalar total = 0;
        for (const std::int32_t e : best) {
          choices.expert_of.push_back(e);
          total += scores(t, e);
          if (total >= p_) break;
        }
      }
      choices.offsets.push_back(choices.size());
    }
    return choices;
  }

 private:
  Scalar p_;
  Index max_k_;
};

}  // namespace

void TopPOptions::fields(FieldVisitor& v) {
  v("p", p,
    {.help = "Sum of scores that the chosen experts must reach",
     .min = 0,
     .max = 1,
     .min_exclusive = true,
     .required = true});
  v("max_k", max_k,
    {.help = "Most experts a token is sent to", .min = 1, .max = kMaxExperts, .when_absent = "all experts"});
  scores.fields(v);
  v.check(scores.score == "softmax", "score", "top_p adds up probabilities: it needs score: softmax");
}

void TopPOptions::check(FieldVisitor& v, Index num_experts) const {
  if (max_k) check_top_k(v, *max_k, num_experts, "router.max_k");
  check_top1_weight(v, max_k.value_or(num_experts), scores.normalize, num_experts, "max_k");
  // The best of E probabilities is 1/E at least.
  v.check(p * static_cast<double>(num_experts) > 1 || !scores.normalize || num_experts == 1,
          "router.normalize",
          fmt::format("p: {} is reached by the best of {} experts alone, so every token has one expert, and "
                      "normalize: true makes its weight 1: the task loss gives the router no gradient; say "
                      "normalize: false, or p above 1 / {}",
                      p, num_experts, num_experts));
}

std::unique_ptr<Router> TopPOptions::make(const RouterShape& shape) const {
  return std::make_unique<TopPRouter>(*this, shape);
}

RouterTraits TopPOptions::traits(Index num_experts) const {
  return {.choices_per_token = max_k.value_or(num_experts),
          .fixed_top_k = false,
          .scale = scores.scale,
          .normalized = scores.normalize};
}

void TopPOptions::multiply_top_k(Index factor) {
  if (max_k) *max_k *= factor;
}

}  // namespace moelab::moe
