// Scales each feature: f(x) = g * x, with a learned row g.
#include "core/ops/elementwise.hpp"
#include "moe/expert.hpp"
#include "moe/registry.hpp"

#include "kinds.hpp"

using namespace moelab;

namespace {

class ScalingExpert final : public moe::Expert {
 public:
  ScalingExpert(Index d_model, double start) : gain_(1, d_model, Init::constant(start)) {}
  void visit(Visitor& v) override { v.parameter("gain", gain_); }

  // x: (n, d_model), the rows that were routed here; never empty.
  Variable forward(const Variable& x, const moe::ExpertRows& rows) override {
    return ops::multiply(x, Variable(gain_, rows.context.record));
  }

 private:
  Parameter gain_;
};

class ScalingOptions final : public moe::ExpertOptions {
 public:
  double start = 1;
  void fields(FieldVisitor& v) override { v("start", start, {.help = "Initial gain"}); }
  std::unique_ptr<moe::ExpertOptions> clone() const override {
    return std::make_unique<ScalingOptions>(*this);
  }
  std::unique_ptr<moe::Expert> make(const moe::ExpertShape& shape) const override {
    return std::make_unique<ScalingExpert>(shape.d_model, start);
  }
};

}  // namespace

void add_scaling_expert() {
  moe::expert_kinds().add({"scaling", "Scales each feature", "the page on adding an expert",
                           [] { return std::make_unique<ScalingOptions>(); }});
}
