// Each token goes to the k experts whose learned centroid is nearest, weighted with a softmax over the
// negative squared distances.
#include "core/ops/elementwise.hpp"
#include "core/ops/matmul.hpp"
#include "core/ops/reduce.hpp"
#include "core/ops/shape.hpp"
#include "core/ops/softmax.hpp"
#include "moe/registry.hpp"
#include "moe/router.hpp"
#include "moe/routers/selection.hpp"

#include "kinds.hpp"

using namespace moelab;

namespace {

class NearestRouter final : public moe::Router {
 public:
  NearestRouter(Index top_k, const moe::RouterShape& shape)
      : top_k_(top_k),
        layer_(shape.layer),
        centroids_(shape.num_experts, shape.d_model, Init::normal(0.02)) {}

  // A parameter is declared once: this is its name in checkpoints. The product is for the accounting.
  void visit(Visitor& v) override {
    v.parameter("centroids", centroids_);
    v.product("centroids", {{}, centroids_.rows(), centroids_.cols()});
  }

  moe::Routing route(const moe::RouterInput& in) override {
    const Variable c(centroids_, in.context.record);
    // -|x - c|^2 = 2 x . c - |x|^2 - |c|^2
    const Variable product = ops::scale(ops::matmul_transposed(in.x, c), 2);
    const Variable x2 = ops::row_sum(ops::square(in.x));               // (N, 1)
    const Variable c2 = ops::transpose(ops::row_sum(ops::square(c)));  // (1, E)
    moe::Routing routing;
    routing.logits = ops::subtract(ops::subtract(product, x2), c2);  // (N, E)
    if (in.probe.logits_offset.defined()) routing.logits = ops::add(routing.logits, in.probe.logits_offset);
    moe::require_finite_logits(routing.logits, in.batch, layer_);
    routing.scores = ops::row_softmax(routing.logits);
    const ConstMatrixView z = routing.logits.value();  // scores underflow, logits do not
    routing.choices = moe::choose_fixed(in.batch, top_k_, [&](Index t, std::int32_t* experts) {
      moe::top_k_of(z.row(t).data(), z.cols(), top_k_, experts);
    });
    routing.weights = moe::choice_weights(routing.scores, routing.choices, /*normalize=*/true, /*scale=*/1);
    return routing;
  }

 private:
  Index top_k_, layer_;
  Parameter centroids_;
};

class NearestOptions final : public moe::RouterOptions {
 public:
  Index top_k = 0;

  // From this come the strict reader, its error messages, the resolved YAML, the schema and `moelab kinds`.
  void fields(FieldVisitor& v) override {
    v("top_k", top_k, {.help = "Experts a token is sent to", .min = 1, .max = 1e6, .required = true});
  }
  void check(FieldVisitor& v, Index num_experts) const override {
    v.check(top_k <= num_experts, "router.top_k", "more than there are experts");
  }
  std::unique_ptr<moe::RouterOptions> clone() const override {
    return std::make_unique<NearestOptions>(*this);
  }
  std::unique_ptr<moe::Router> make(const moe::RouterShape& shape) const override {
    return std::make_unique<NearestRouter>(top_k, shape);
  }
  moe::RouterTraits traits(Index /*num_experts*/) const override { return {.choices_per_token = top_k}; }
};

}  // namespace

void add_nearest_router() {
  moe::router_kinds().add({"nearest", "The nearest learned centroids", "the page on adding a router",
                           [] { return std::make_unique<NearestOptions>(); }});
}
