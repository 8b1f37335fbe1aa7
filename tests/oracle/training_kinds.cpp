#include "core/error.hpp"
#include "core/optim.hpp"
#include "core/schedule.hpp"
#include "tests/oracle/binding.hpp"
#include "tests/oracle/kinds.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

namespace moelab::oracle {

namespace {

// Parameters with the names and values of a case. What the case says is decayed is a matrix here, everything
// else a row, because the library decays matrices and nothing else.
class NamedValuesModule : public Module {
 public:
  NamedValuesModule(const Arrays& arrays, const yaml::Node* decayed) {
    for (const auto& [name, array] : arrays) {
      const auto size = static_cast<Index>(array.values.size());
      const bool decays = decayed != nullptr &&
                          std::ranges::find(decayed->items, name, &yaml::Node::text) != decayed->items.end();
      names_.push_back(name);
      parameters_.emplace_back(decays ? size : 1, decays ? 1 : size, Init::constant(0));
    }
  }
  void visit(Visitor& v) override {
    for (std::size_t i = 0; i < names_.size(); ++i) v.parameter(names_[i], parameters_[i]);
  }

 private:
  std::vector<std::string> names_;
  std::deque<Parameter> parameters_;
};

// The gradients of one step: row `step` of each grad.NAME.
void set_gradients(ParameterStore& store, const Case& c, Index step) {
  for (const NamedParameter& p : store.parameters()) {
    const Array& all = c.input_of("grad." + p.path);
    MatrixView grad = p.parameter->grad();
    for (Index i = 0; i < grad.size(); ++i) {
      grad.data()[i] = static_cast<Scalar>(all.values[static_cast<std::size_t>(step * grad.size() + i)]);
    }
  }
}

void run_optimizer(const Case& c, Comparison& out, ParameterStore& store, Optimizer& optimizer) {
  const double lr = number_at(node_at(c.config, "optimizer"), "lr").value();
  std::map<std::string, std::vector<double>> after;
  const NamedParameter& first = store.parameters().front();
  const Index steps =
      static_cast<Index>(c.input_of("grad." + first.path).values.size()) / first.parameter->size();
  for (Index step = 0; step < steps; ++step) {
    set_gradients(store, c, step);
    optimizer.step(lr);
    for (const NamedParameter& p : store.parameters()) {
      const MatrixView value = p.parameter->value();
      after[p.path].insert(after[p.path].end(), value.data(), value.data() + value.size());
    }
  }
  for (const auto& [name, values] : after) out.output("after." + name, std::span<const double>(values));
  optimizer.visit_state([&](const std::string& name, MatrixView state) { out.output(name, state); });
}

void run_adamw(const Case& c, Comparison& out) {
  const yaml::Node& o = node_at(c.config, "optimizer");
  AdamWOptions options;
  const yaml::Node& betas = node_at(o, "betas");
  options.beta1 = std::stod(betas.items.at(0).text);
  options.beta2 = std::stod(betas.items.at(1).text);
  options.eps = number_at(o, "eps", options.eps);
  options.weight_decay = number_at(o, "weight_decay", 0);
  NamedValuesModule module(c.weights, c.config.find("decay"));
  BoundModule bound(module, c);
  run_optimizer(c, out, bound.store(), *make_adamw(bound.store(), options));
}

void run_sgd(const Case& c, Comparison& out) {
  const yaml::Node& o = node_at(c.config, "optimizer");
  NamedValuesModule module(c.weights, c.config.find("decay"));
  BoundModule bound(module, c);
  run_optimizer(c, out, bound.store(),
                *make_sgd(bound.store(), {number_at(o, "momentum", 0), number_at(o, "weight_decay", 0)}));
}

void run_clip(const Case& c, Comparison& out) {
  Arrays shapes;
  for (const auto& [name, array] : c.input) shapes[name.substr(std::string("grad.").size())] = array;
  NamedValuesModule module(shapes, nullptr);
  ParameterStore store(module, 0);
  set_gradients(store, c, 0);
  out.output("norm", clip_grad_norm(store, number_at(c.config, "grad_clip").value()));
  // The coefficient is what the largest entry was multiplied with.
  double before = 0, ratio = 1;
  for (const NamedParameter& p : store.parameters()) {
    const MatrixView clipped = p.parameter->grad();
    const Array& original = c.input_of("grad." + p.path);
    for (Index i = 0; i < clipped.size(); ++i) {
      const double g = original.values[static_cast<std::size_t>(i)];
      if (std::abs(g) > std::abs(before)) {
        before = g;
        ratio = static_cast<double>(clipped.data()[i]) / g;
      }
    }
    out.output("clipped." + p.path, clipped);
  }
  out.output("coefficient", ratio);
}

void run_schedule(const Case& c, Comparison& out) {
  const Schedule schedule = schedule_of(c.config);
  const double peak = number_at(node_at(c.config, "optimizer"), "lr").value();
  std::vector<double> lr;
  for (Index step = 0; step < integer_at(c.config, "max_steps", 0); ++step) {
    lr.push_back(peak * schedule.factor(step * integer_at(c.config, "batch_tokens", 0)));
  }
  out.output("lr", std::span<const double>(lr));
}

}  // namespace

Schedule schedule_of(const yaml::Node& train) {
  const yaml::Node& s = node_at(train, "schedule");
  const std::string kind = text_at(s, "kind", "cosine");
  Schedule schedule;
  schedule.kind = kind == "cosine"     ? Schedule::Kind::cosine
                  : kind == "linear"   ? Schedule::Kind::linear
                  : kind == "constant" ? Schedule::Kind::constant
                                       : Schedule::Kind::wsd;
  require(schedule.kind != Schedule::Kind::wsd || kind == "wsd", "[oracle] unknown schedule '{}'", kind);
  schedule.max_tokens = integer_at(train, "max_steps", 0) * integer_at(train, "batch_tokens", 0);
  schedule.warmup_tokens = integer_at(s, "warmup_tokens", 0);
  schedule.min_lr_ratio = number_at(s, "min_lr_ratio", 0);
  schedule.decay_tokens = integer_at(s, "decay_tokens", 0);
  return schedule;
}

const std::vector<Kind> kTrainingKinds{
    {"adamw", run_adamw},
    {"sgd", run_sgd},
    {"clip", run_clip},
    {"schedule", run_schedule},
};

}  // namespace moelab::oracle
