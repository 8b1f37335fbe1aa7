#include "moe/routers/sinkhorn.hpp"

#include "moe/routers/selection.hpp"

namespace moelab::moe {

namespace {

constexpr double kTolerance = 1e-4;
constexpr double kLeastLogit = -600;  // below the row's largest: keeps every column's sum above 0
constexpr int kMaxIterations = 1000;

using Array = Eigen::Array<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::ArrayXd;

struct Scaling {
  Array cost;         // (n, E) exp(z), the largest of each row made 1: a factor on a row changes nothing else
  Vector rows, cols;  // factors of tokens and experts
};

// logits: n > 0 rows.
Scaling scale_uniformly(In logits) {
  const Index n = logits.rows();
  const Array z = logits.cast<double>().array();
  Scaling s{(z.colwise() - z.rowwise().maxCoeff()).max(kLeastLogit).exp(), Vector::Ones(n),
            Vector::Ones(logits.cols())};
  for (int i = 0; i < kMaxIterations; ++i) {
    const Vector before = s.cols;
    s.rows = 1.0 / static_cast<double>(n) / (s.cost.rowwise() * s.cols.transpose()).rowwise().sum();
    s.cols =
        1.0 / static_cast<double>(logits.cols()) / (s.cost.colwise() * s.rows).colwise().sum().transpose();
    if ((s.cols - before).abs().mean() < kTolerance) break;
  }
  return s;
}

class SinkhornRouter final : public TokenChoiceRouter {
 public:
  SinkhornRouter(const SinkhornOptions& options, const RouterShape& shape)
      : TokenChoiceRouter(options.scores, shape), top_k_(options.top_k) {}

 protected:
  Choices choose(const RouterInput& input, In logits, In /*scores*/) override {
    Array values = logits.cast<double>();
    const std::vector<Index> tokens = real_tokens(input.batch);
    if (input.context.training && !tokens.empty()) {
      Matrix real(static_cast<Index>(tokens.size()), logits.cols());
      for (std::size_t i = 0; i < tokens.size(); ++i) real.row(static_cast<Index>(i)) = logits.row(tokens[i]);
      // Within a token, exp(z) times the experts' factors is in the order of its logarithm, which does not
      // underflow.
      values.rowwise() += scale_uniformly(real).cols.log().transpose();
    }
    return choose_fixed(input.batch, top_k_, [&](Index t, std::int32_t* experts) {
      best_of(values.cols(), top_k_, experts, [&](Index a, Index b) { return values(t, a) > values(t, b); });
    });
  }

 private:
  Index top_k_;
};

}  // namespace

Matrix sinkhorn(In logits) {
  if (logits.rows() == 0) return logits;
  const Scaling s = scale_uniformly(logits);
  return ((s.cost.colwise() * s.rows).rowwise() * s.cols.transpose()).matrix().cast<Scalar>();
}

void SinkhornOptions::fields(FieldVisitor& v) {
  v("top_k", top_k, {.help = "Experts a token is sent to", .min = 1, .max = kMaxExperts, .required = true});
  scores.fields(v);
}

void SinkhornOptions::check(FieldVisitor& v, Index num_experts) const {
  check_top_k(v, top_k, num_experts);
  check_top1_weight(v, top_k, scores.normalize, num_experts);
}

std::unique_ptr<Router> SinkhornOptions::make(const RouterShape& shape) const {
  return std::make_unique<SinkhornRouter>(*this, shape);
}

RouterTraits SinkhornOptions::traits(Index /*num_experts*/) const {
  return {.choices_per_token = top_k, .scale = scores.scale, .normalized = scores.normalize, .causal = false};
}

}  // namespace moelab::moe
