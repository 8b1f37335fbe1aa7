#include "moe/routers/sinkhorn.hpp"

#include "core/error.hpp"
#include "moe/routers/selection.hpp"

namespace moelab::moe {

namespace {

constexpr double kTolerance = 1e-4;
constexpr double kLeastLogit = -600;  // below the row's largest: keeps every column's sum above 0
constexpr int kMaxIterations = 100000;

using Array = Eigen::Array<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::ArrayXd;

class SinkhornRouter final : public TokenChoiceRouter {
 public:
  SinkhornRouter(const SinkhornOptions& options, const RouterShape& shape)
      : TokenChoiceRouter(options.scores, shape), top_k_(options.top_k) {}

 protected:
  Choices choose(const RouterInput& input, In logits, In scores) override {
    Matrix values = scores;
    if (input.context.training) {
      const std::vector<Index> tokens = real_tokens(input.batch);
      Matrix real(static_cast<Index>(tokens.size()), logits.cols());
      for (std::size_t i = 0; i < tokens.size(); ++i) real.row(static_cast<Index>(i)) = logits.row(tokens[i]);
      const Matrix balanced = sinkhorn(real);
      for (std::size_t i = 0; i < tokens.size(); ++i)
        values.row(tokens[i]) = balanced.row(static_cast<Index>(i));
    }
    return choose_fixed(input.batch, top_k_, [&](Index t, std::int32_t* experts) {
      top_k_of(values.row(t).data(), values.cols(), top_k_, experts);
    });
  }

 private:
  Index top_k_;
};

}  // namespace

Matrix sinkhorn(In logits) {
  const Index n = logits.rows();
  const Index num_experts = logits.cols();
  if (n == 0) return logits;
  // A factor on a row changes its row factor only, so the largest entry of each row is made 1: no overflow.
  const Array z = logits.cast<double>().array();
  const Array cost = (z.colwise() - z.rowwise().maxCoeff()).max(kLeastLogit).exp();
  Vector rows = Vector::Ones(n);
  Vector cols = Vector::Ones(num_experts);
  for (int i = 0; i < kMaxIterations; ++i) {
    const Vector before = cols;
    rows = 1.0 / static_cast<double>(n) / (cost.rowwise() * cols.transpose()).rowwise().sum();
    cols = 1.0 / static_cast<double>(num_experts) / (cost.colwise() * rows).colwise().sum().transpose();
    if ((cols - before).abs().mean() < kTolerance) {
      return ((cost.colwise() * rows).rowwise() * cols.transpose()).matrix().cast<Scalar>();
    }
  }
  fail("[sinkhorn] no convergence in {} iterations", kMaxIterations);
}

void SinkhornOptions::fields(FieldVisitor& v) {
  v("top_k", top_k, {.help = "Experts a token is sent to", .min = 1, .required = true});
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
