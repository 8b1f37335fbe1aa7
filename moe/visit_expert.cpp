#include "moe/visit_expert.hpp"

namespace moelab::moe {

namespace {

enum class Half { parameters, compute };

// Passes on one half of what a module declares.
class HalfVisitor final : public Visitor {
 public:
  HalfVisitor(Visitor& to, Half half) : Visitor(to.context()), to_(to), half_(half) {}

 private:
  void on_parameter(const std::string& path, Parameter& p) override {
    if (half_ == Half::parameters) to_.parameter(path, p);
  }
  void on_state(const std::string& path, Matrix& m) override {
    if (half_ == Half::parameters) to_.state(path, m);
  }
  void on_product(const std::string& path, const ProductCount& p) override {
    if (half_ == Half::compute) to_.product(path, p);
  }
  void on_attention(const std::string& /*path*/, Index width, Index kv_width, bool causal) override {
    if (half_ == Half::compute) to_.attention(width, kv_width, causal);
  }

  Visitor& to_;
  Half half_;
};

class HalfModule final : public Module {
 public:
  HalfModule(Module& whole, Half half) : whole_(whole), half_(half) {}
  void visit(Visitor& visitor) override {
    HalfVisitor half(visitor, half_);
    whole_.visit(half);
  }

 private:
  Module& whole_;
  Half half_;
};

}  // namespace

void visit_expert(Visitor& visitor, std::string_view name, Module& expert, Share parameters, Share compute) {
  if (parameters.chosen == compute.chosen && parameters.total == compute.total) {
    visitor.module(name, expert, "experts", compute);
    return;
  }
  HalfModule first(expert, Half::parameters);
  HalfModule second(expert, Half::compute);
  visitor.module(name, first, "experts", parameters);
  visitor.module(name, second, "experts", compute);
}

}  // namespace moelab::moe
