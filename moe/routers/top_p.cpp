#include "moe/routers/top_p.hpp"

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
  Choices choose(const RouterInput& input, In /*logits*/, In scores) override {
    Choices choices;
    choices.offsets.push_back(0);
    std::vector<std::int32_t> best(static_cast<std::size_t>(max_k_));
    for (Index t = 0; t < scores.rows(); ++t) {
      if (is_real(input.batch, t)) {
        top_k_of(scores.row(t).data(), scores.cols(), max_k_, best.data());
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
  v("max_k", max_k, {.help = "Most experts a token is sent to", .min = 1, .when_absent = "all experts"});
  scores.fields(v);
  v.check(scores.score == "softmax", "score", "top_p adds up probabilities: it needs score: softmax");
}

void TopPOptions::check(FieldVisitor& v, Index num_experts) const {
  if (max_k) check_top_k(v, *max_k, num_experts, "router.max_k");
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
