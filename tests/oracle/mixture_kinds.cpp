#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/gather.hpp"
#include "core/ops/reduce.hpp"
#include "core/ops/shape.hpp"
#include "moe/capacity.hpp"
#include "moe/moe_layer.hpp"
#include "moe/routers/selection.hpp"
#include "tests/oracle/binding.hpp"
#include "tests/oracle/choice_tables.hpp"
#include "tests/oracle/kinds.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace moelab::oracle {

namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// What the main output of a case is, and so what its loss is made of.
enum class Main { none, combine, y };

// One micro-batch: rows [begin, begin + size) of the case.
struct Part {
  Index begin = 0;
  moe::TokenBatch batch;
  std::vector<std::uint8_t> is_real;
  Matrix noise;
  Variable logits_offset;
  moe::Routing routing;
  moe::FfnOutput output;
  std::vector<std::int64_t> counts;  // (E)
};

class MixtureCase {
 public:
  MixtureCase(const Case& c, Main main)
      : c_(c),
        main_(main),
        x_(c.input_of("x").matrix(), true),
        config_(c.config_as<moe::FfnConfig>().moe.expanded()),
        layer_(config_, {x_.cols(), 0, 1}),
        // Cases of routers and losses have no experts.
        bound_(layer_, c, "", main == Main::y ? "" : "experts.") {
    context_.record = true;
    context_.training = c.training;
    for (const NamedState& s : states(layer_)) {
      if (s.path == "router.lambda")
        (*s.state)(0, 0) = static_cast<Scalar>(c.input_of("lambda").values.at(0));
    }
    for (Index m = 0; m < c.micro_batches; ++m) parts_.push_back(make_part(m));
  }

  void run(Comparison& out) {
    skip_padding(out);
    if (layer_.needs_step_counts()) count_the_step();
    for (Part& part : parts_) forward(part);
    outputs(out);
    losses_and_gradients(out);
  }

 private:
  Part make_part(Index m) const {
    Part part;
    const Index size = x_.rows() / c_.micro_batches;
    part.begin = m * size;
    part.batch.num_sequences = c_.batch.value_or(c_.micro_batches) / c_.micro_batches;
    part.batch.seq_len = size / part.batch.num_sequences;
    const auto mask = c_.input.find("mask");
    if (mask != c_.input.end()) {
      for (Index t = 0; t < size; ++t) part.is_real.push_back(mask->second.values[at(part.begin + t)] != 0);
    }
    const auto noise = c_.input.find("noise");
    if (noise != c_.input.end()) part.noise = noise->second.matrix().middleRows(part.begin, size);
    part.logits_offset = Variable(Matrix::Zero(size, logit_columns()), true);
    return part;
  }

  Index logit_columns() const {
    const auto logits = c_.output.find("logits");
    return logits == c_.output.end() ? layer_.num_experts() : logits->second.cols();
  }

  moe::RouterProbe probe_of(const Part& part) const {
    moe::RouterProbe probe;
    if (part.noise.size() > 0) probe.noise = &part.noise;
    probe.logits_offset = part.logits_offset;
    return probe;
  }

  moe::TokenBatch batch_of(const Part& part) const {
    moe::TokenBatch batch = part.batch;
    batch.is_real = part.is_real;
    return batch;
  }

  Variable rows_of(const Part& part) const { return ops::slice_rows(x_, part.begin, part.batch.size()); }

  void skip_padding(Comparison& out) const {
    std::vector<bool> is_padding;
    for (const Part& part : parts_) {
      for (const std::uint8_t real : part.is_real) is_padding.push_back(real == 0);
    }
    out.skip_rows(std::move(is_padding));
  }

  // The pass that the trainer makes for losses over the whole step.
  void count_the_step() {
    std::vector<std::int64_t> counts(at(layer_.num_experts()), 0);
    ForwardContext context = context_;
    context.record = false;
    for (const Part& part : parts_) {
      const moe::FfnOutput output = layer_.forward(rows_of(part), batch_of(part), context, probe_of(part));
      for (const std::int32_t e : output.routing->expert_of) ++counts[at(e)];
    }
    layer_.before_step(counts);
  }

  void forward(Part& part) {
    const Variable x = rows_of(part);
    const moe::TokenBatch batch = batch_of(part);
    const moe::RouterProbe probe = probe_of(part);
    part.routing = layer_.router().route({x, batch, context_, probe});
    part.output = layer_.forward(x, batch, context_, probe);
    part.counts.assign(at(layer_.num_experts()), 0);
    for (const std::int32_t e : part.routing.choices.expert_of) ++part.counts[at(e)];
  }

  // (N, E) of a micro-batch: the weight of each choice, before drops.
  Variable combine_before_drops(const Part& part) const {
    return ops::scatter_entries(part.routing.weights, moe::token_of_choice(part.routing.choices),
                                moe::expert_of_choice(part.routing.choices), part.batch.size(),
                                layer_.num_experts());
  }

  void outputs(Comparison& out) {
    std::vector<Matrix> logits, scores, combine, ids, weights, kept, y;
    std::vector<double> counts, capacity;
    Index assignments = 0, dropped = 0, without_expert = 0, real_tokens = 0;
    for (const Part& part : parts_) {
      if (part.routing.logits.defined()) logits.emplace_back(part.routing.logits.value());
      if (part.routing.scores.defined()) scores.emplace_back(part.routing.scores.value());
      y.emplace_back(part.output.y.value());
      counts.insert(counts.end(), part.counts.begin(), part.counts.end());
      if (part.routing.mixing) {
        out.output("dispatch", part.routing.mixing->dispatch.value());
        combine.emplace_back(part.routing.mixing->combine.value());
        continue;
      }
      const moe::RoutingRecord& record = *part.output.routing;
      capacity.push_back(static_cast<double>(record.capacity));
      const Index places = out.wants("ids") ? c_.output.at("ids").cols() : 0;
      ChoiceTables tables = choice_tables(record, part.is_real, places);
      assignments += tables.assignments;
      dropped += tables.dropped;
      real_tokens += tables.tokens;
      without_expert += tables.tokens_without_expert;
      combine.push_back(main_ == Main::y ? tables.combine : Matrix(combine_before_drops(part).value()));
      ids.push_back(std::move(tables.ids));
      weights.push_back(std::move(tables.weights));
      kept.push_back(std::move(tables.kept));
    }
    put(out, "logits", logits);
    put(out, "scores", scores);
    put(out, "combine", combine);
    put(out, "ids", ids);
    put(out, "weights", weights);
    put(out, "kept", kept);
    if (main_ == Main::y) put(out, "y", y);
    out.output("counts", std::span<const double>(counts));
    out.output("capacity", std::span<const double>(capacity));
    out.output("fraction_dropped", ratio(dropped, assignments));
    out.output("fraction_without_expert", ratio(without_expert, real_tokens));
    if (out.wants("tokens")) out.output("tokens", tokens_of_experts());
    if (out.wants("density")) relu_outputs(out);
  }

  static double ratio(Index a, Index b) {
    return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
  }

  static void put(Comparison& out, const std::string& name, const std::vector<Matrix>& parts) {
    if (parts.empty()) return;
    std::vector<double> all;
    for (const Matrix& part : parts) all.insert(all.end(), part.data(), part.data() + part.size());
    out.output(name, std::span<const double>(all));
  }

  // Of expert choice: each expert's tokens, in order of falling score, ties to the lowest token. (E, C)
  std::vector<double> tokens_of_experts_of(const Part& part) const {
    const ConstMatrixView scores = part.routing.scores.value();
    const std::vector<Index> tokens = moe::token_of_choice(part.routing.choices);
    std::vector<double> all;
    for (Index e = 0; e < layer_.num_experts(); ++e) {
      std::vector<Index> mine;
      for (std::size_t a = 0; a < tokens.size(); ++a) {
        if (part.routing.choices.expert_of[a] == e) mine.push_back(tokens[a]);
      }
      std::stable_sort(mine.begin(), mine.end(),
                       [&](Index s, Index t) { return scores(s, e) > scores(t, e); });
      all.insert(all.end(), mine.begin(), mine.end());
    }
    return all;
  }
  std::span<const double> tokens_of_experts() {
    expert_tokens_ = tokens_of_experts_of(parts_.front());
    return expert_tokens_;
  }

  void relu_outputs(Comparison& out) {
    std::vector<std::int64_t> counts(at(layer_.num_experts()), 0);
    Index num_tokens = 0;
    double l1 = 0;
    for (const Part& part : parts_) {
      for (std::size_t e = 0; e < counts.size(); ++e) counts[e] += part.counts[e];
      num_tokens += part.output.routing->num_tokens;
      for (const moe::AuxiliaryLoss& loss : part.routing.losses) l1 += loss.value.item();
    }
    const std::int64_t active = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    out.output("l1", l1 / static_cast<double>(parts_.size()));
    out.output("density", ratio(active, num_tokens * layer_.num_experts()));
    layer_.after_step(counts, num_tokens);
    for (const NamedState& s : states(layer_)) {
      if (s.path == "router.lambda") out.output("lambda_next", (*s.state)(0, 0));
    }
  }

  void losses_and_gradients(Comparison& out) {
    std::vector<Variable> terms;
    std::vector<double> factors;
    std::map<std::string, std::vector<double>> values;
    double aux = 0, absolute = 0;
    const double share = 1.0 / static_cast<double>(parts_.size());
    for (const Part& part : parts_) {
      for (const moe::AuxiliaryLoss& loss : part.output.losses) {
        const double value = loss.weight * loss.value.item() * share;
        terms.push_back(loss.value);
        factors.push_back(loss.weight * share);
        absolute += std::abs(value);
        values["loss." + loss.name].push_back(loss.value.item());
        if (out.wants("loss." + loss.name)) aux += value;
      }
      if (main_ == Main::none) continue;
      const Variable main = main_ == Main::y      ? part.output.y
                            : part.routing.mixing ? part.routing.mixing->combine
                                                  : combine_before_drops(part);
      Array probe;
      const Matrix rows = c_.probe.value().matrix().middleRows(part.begin, part.batch.size());
      probe.shape = {at(rows.rows()), at(rows.cols())};
      probe.values.assign(rows.data(), rows.data() + rows.size());
      terms.push_back(probed(masked(part, main), probe));
      factors.push_back(1);
      absolute += absolute_terms(masked(part, main), probe);
    }
    for (const auto& [name, all] : values) out.output(name, std::span<const double>(all));
    out.output("aux", aux);
    const Variable loss = ops::weighted_sum(terms, factors);
    out.loss(loss.item(), absolute);
    backward(loss);
    out.gradient("x", x_.grad());
    Matrix offsets(x_.rows(), logit_columns());
    for (const Part& part : parts_) {
      offsets.middleRows(part.begin, part.batch.size()) = part.logits_offset.grad();
    }
    out.gradient("logits", offsets);
    bound_.gradients(out);
  }

  // Padding rows are not part of the loss.
  static Variable masked(const Part& part, const Variable& main) {
    if (part.is_real.empty()) return main;
    Matrix mask(main.rows(), 1);
    for (Index t = 0; t < mask.rows(); ++t) mask(t, 0) = part.is_real[at(t)];
    return ops::multiply(main, Variable(std::move(mask)));
  }

  const Case& c_;
  Main main_;
  Variable x_;
  moe::MoeConfig config_;
  moe::MoeLayer layer_;
  BoundModule bound_;
  ForwardContext context_;
  std::vector<Part> parts_;
  std::vector<double> expert_tokens_;
};

void run_router(const Case& c, Comparison& out) { MixtureCase(c, Main::combine).run(out); }
void run_loss(const Case& c, Comparison& out) { MixtureCase(c, Main::none).run(out); }
void run_moe(const Case& c, Comparison& out) { MixtureCase(c, Main::y).run(out); }

void run_expert_bias_update(const Case& c, Comparison& out) {
  const Array& counts = c.input_of("counts");
  const moe::MoeConfig config = c.config_as<moe::FfnConfig>().moe.expanded();
  moe::MoeLayer layer(config, {1, 0, 1});
  Matrix* bias = nullptr;
  for (const NamedState& s : states(layer)) {
    if (s.path == "router.expert_bias") bias = s.state;
  }
  require(bias != nullptr, "[oracle] {}: the router has no expert bias", c.name);
  *bias = c.weight_of("router.expert_bias").matrix();
  std::vector<std::int64_t> step(at(counts.cols()), 0);
  for (std::size_t i = 0; i < counts.values.size(); ++i) {
    step[i % step.size()] += static_cast<std::int64_t>(counts.values[i]);
  }
  const std::int64_t chosen = std::accumulate(step.begin(), step.end(), std::int64_t{0});
  layer.after_step(step, chosen / std::max<Index>(layer.top_k(), 1));
  out.output("expert_bias_next", *bias);
}

void run_capacity_formula(const Case& c, Comparison& out) {
  std::vector<double> capacity;
  for (const yaml::Node& row : node_at(c.config, "rows").items) {
    capacity.push_back(static_cast<double>(moe::expert_capacity(
        number_at(row, "factor").value(), integer_at(row, "top_k", 1), integer_at(row, "tokens", 0),
        integer_at(row, "experts", 1), integer_at(row, "min", 1))));
  }
  out.output("capacity", std::span<const double>(capacity));
}

}  // namespace

const std::vector<Kind> kMixtureKinds{
    {"router", run_router},
    {"loss", run_loss},
    {"capacity", run_moe},
    {"moe", run_moe},
    {"expert_bias_update", run_expert_bias_update},
    {"capacity_formula", run_capacity_formula},
};

}  // namespace moelab::oracle
