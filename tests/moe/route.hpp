// Routers from their text, and what they choose for given rows.
#pragma once

#include "tests/support/ffn_yaml.hpp"

#include <string>

#include <fmt/format.h>

namespace moelab::moe {

// An `ffn:` block of that many experts of width 2.
inline std::string block(Index experts, const std::string& router) {
  return fmt::format(
      "kind: moe\nexperts: {{kind: ffn, count: {}, activation: relu, d_ff: 2}}\nrouter: {{{}}}\n", experts,
      router);
}

inline Routing route(const test::Ffn& ffn, const Matrix& x, const TokenBatch& batch,
                     const ForwardContext& context, const RouterProbe& probe = {}) {
  return ffn.moe().router().route({Variable(x), batch, context, probe});
}

// Routes rows of logits: the router's weight is the identity.
inline Routing route(const std::string& router, const Matrix& z, const TokenBatch& batch,
                     bool training = true) {
  const test::Ffn ffn(block(z.cols(), router), z.cols());
  ffn.weight("router.weight").setIdentity();
  ForwardContext context = test::training_context();
  context.training = training;
  return route(ffn, z, batch, context);
}

inline Routing route(const std::string& router, const Matrix& z, bool training = true) {
  return route(router, z, test::batch_of(z.rows()), training);
}

}  // namespace moelab::moe
