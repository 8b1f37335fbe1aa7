#include "moe/cost.hpp"

namespace moelab::moe {

namespace {

double share(const Share& s) { return static_cast<double>(s.chosen) / static_cast<double>(s.total); }

double flops(const ProductCount& p) {
  return 2 * share(p.rows_per_token) * static_cast<double>(p.out) * static_cast<double>(p.in);
}

class FlopsCounter : public Visitor {
 public:
  double flops_per_row = 0;

 private:
  void on_product(const std::string& /*path*/, const ProductCount& p) override {
    flops_per_row += share(active()) * flops(p);
  }
};

class PlannedCounter : public Visitor {
 public:
  using Visitor::Visitor;
  PlannedCompute planned;

 private:
  void on_product(const std::string& /*path*/, const ProductCount& p) override {
    if (group() == "router") return;
    planned.active_flops += share(active()) * flops(p);
    planned.full_flops += flops(p);
  }
};

}  // namespace

double flops_per_row(Module& module) {
  FlopsCounter counter;
  module.visit(counter);
  return counter.flops_per_row;
}

PlannedCompute planned_compute(Module& ffn, Index context) {
  PlannedCounter counter(context);
  ffn.visit(counter);
  return counter.planned;
}

}  // namespace moelab::moe
