#include "moe/routers/soft.hpp"

#include "core/ops/elementwise.hpp"
#include "core/ops/gather.hpp"
#include "core/ops/matmul.hpp"
#include "core/ops/normalise.hpp"
#include "core/ops/shape.hpp"
#include "core/ops/softmax.hpp"
#include "moe/routers/selection.hpp"

#include <vector>

namespace moelab::moe {

namespace {

class SoftRouter final : public Router {
 public:
  SoftRouter(const SoftOptions& options, const RouterShape& shape)
      : slots_(options.slots),
        shape_(shape),
        phi_(shape.num_experts * options.slots, shape.d_model, Init::normal(options.init_std)),
        scale_(1, 1, Init::constant(1)) {}

  void visit(Visitor& visitor) override {
    visitor.parameter("phi", phi_);
    visitor.parameter("scale", scale_);
    visitor.product("phi", {{}, phi_.rows(), phi_.cols()});
    visitor.product("dispatch", {{}, phi_.rows(), phi_.cols()});
    visitor.product("combine", {{}, phi_.cols(), phi_.rows()});
  }

  Routing route(const RouterInput& input) override {
    const bool record = input.context.record;
    const Variable cosine =
        ops::matmul_transposed(ops::row_normalise(input.x), ops::row_normalise(Variable(phi_, record)));
    Routing routing;
    routing.logits = ops::multiply(cosine, Variable(scale_, record));
    if (input.probe.logits_offset.defined())
      routing.logits = ops::add(routing.logits, input.probe.logits_offset);
    require_finite_logits(routing.logits, input.batch, shape_.layer);

    const Index n = input.batch.size();
    SlotMixing mixing{slots_, Variable(Matrix::Zero(n, phi_.rows())), Variable(Matrix::Zero(n, phi_.rows()))};
    const std::vector<Index> tokens = real_tokens(input.batch);
    if (!tokens.empty()) {
      const Variable combine = ops::row_softmax(ops::gather_rows(routing.logits, tokens));
      mixing.combine = ops::scatter_rows(combine, tokens, n);
      mixing.dispatch = ops::scatter_rows(dispatch(routing.logits, input.batch), tokens, n);
    }
    routing.mixing = std::move(mixing);
    return routing;
  }

 private:
  // Softmax over the real tokens of each sequence; one row a real token.
  static Variable dispatch(const Variable& logits, const TokenBatch& batch) {
    std::vector<Variable> parts;
    for (Index b = 0; b < batch.num_sequences; ++b) {
      std::vector<Index> rows;
      for (Index t = b * batch.seq_len; t < (b + 1) * batch.seq_len; ++t) {
        if (is_real(batch, t)) rows.push_back(t);
      }
      if (rows.empty()) continue;
      parts.push_back(ops::transpose(ops::row_softmax(ops::transpose(ops::gather_rows(logits, rows)))));
    }
    return ops::concat_rows(parts);
  }

  Index slots_;
  RouterShape shape_;
  Parameter phi_, scale_;
};

}  // namespace

void SoftOptions::fields(FieldVisitor& v) {
  v("slots", slots, {.help = "Slots of each expert, in each sequence", .min = 1, .max = 1e6});
  v("init_std", init_std, {.help = "Standard deviation of the initial phi", .min = 0, .min_exclusive = true});
}

std::unique_ptr<Router> SoftOptions::make(const RouterShape& shape) const {
  return std::make_unique<SoftRouter>(*this, shape);
}

RouterTraits SoftOptions::traits(Index /*num_experts*/) const {
  return {.choices_per_token = 0,
          .fixed_top_k = false,
          .has_logits = false,
          .has_scores = false,
          .causal = false};
}

Share SoftOptions::active_share(Index /*num_experts*/, Index context) const { return {slots, context}; }

}  // namespace moelab::moe
