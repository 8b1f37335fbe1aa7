#include "tests/support/ffn_yaml.hpp"

#include "core/diagnostics.hpp"
#include "core/error.hpp"
#include "core/fields_reader.hpp"
#include "core/yaml.hpp"

namespace moelab::test {

namespace {

moe::FfnConfig read(const std::string& yaml, Diagnostics& diagnostics) {
  moe::FfnConfig config;
  const yaml::Node node = yaml::parse(yaml, yaml::make_source("ffn", yaml), diagnostics);
  read_fields(node, config, diagnostics);
  return config;
}

}  // namespace

moe::FfnConfig ffn_config(const std::string& yaml) {
  Diagnostics diagnostics;
  moe::FfnConfig config = read(yaml, diagnostics);
  diagnostics.throw_if_errors();
  return config;
}

std::string ffn_config_errors(const std::string& yaml) {
  Diagnostics diagnostics;
  read(yaml, diagnostics);
  return diagnostics.render();
}

Ffn::Ffn(const std::string& yaml, Index d_model, std::uint64_t seed, moe::FfnShape shape) {
  shape.d_model = d_model;
  block = make_ffn(ffn_config(yaml), shape);
  store = std::make_unique<ParameterStore>(*block, seed);
}

moe::FfnOutput Ffn::forward(const Matrix& x, bool training) const {
  ForwardContext context = training_context();
  context.training = training;
  context.record = training;
  return forward(Variable(x, training), context);
}

moe::FfnOutput Ffn::forward(const Variable& x, const ForwardContext& context) const {
  return block->forward(x, batch_of(x.rows()), context);
}

moe::MoeLayer& Ffn::moe() const { return dynamic_cast<moe::MoeLayer&>(*block); }

MatrixView Ffn::weight(const std::string& path) const {
  for (const NamedParameter& p : store->parameters()) {
    if (p.path != path) continue;
    p.parameter->mark_changed();  // the caller may change it
    return p.parameter->value();
  }
  fail("[test] no parameter {}", path);
}

MatrixView Ffn::gradient(const std::string& path) const {
  for (const NamedParameter& p : store->parameters()) {
    if (p.path == path) return p.parameter->grad();
  }
  fail("[test] no parameter {}", path);
}

moe::TokenBatch batch_of(Index rows, Index seq_len) {
  if (seq_len == 0) return {.num_sequences = 1, .seq_len = rows, .ids = {}, .is_real = {}};
  return {.num_sequences = rows / seq_len, .seq_len = seq_len, .ids = {}, .is_real = {}};
}

ForwardContext training_context() {
  ForwardContext context;
  context.training = true;
  context.record = true;
  context.seed = 7;
  return context;
}

}  // namespace moelab::test
