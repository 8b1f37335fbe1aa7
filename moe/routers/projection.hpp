// Hidden rows to logits: the learned part that routers share.
#pragma once

#include "core/autograd.hpp"
#include "core/context.hpp"
#include "core/fields.hpp"
#include "core/module.hpp"
#include "moe/router.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace moelab::moe {

struct ProjectionOptions {
  std::string projection = "linear";  // linear | cosine | mlp
  double init_std = 0.02;
  bool bias = false;
  double jitter = 0;
  double temperature = 1;
  void fields(FieldVisitor& v);
};

// - linear: x W^T + b, parameters `weight` (E, d_model), `bias`.
// - cosine: tau normalise(P x) . normalise(e), parameters `proj` (min(256, d_model), d_model), `embed`,
//   `tau`, which is clamped to [0, 100] and starts at 1 / 0.07 (X-MoE, Chi et al. 2022, equation 4).
// - mlp: W2 tanh(W1 x + b1) + b2, parameters `w1` (d_model, d_model), `w2` (E, d_model), `b1`, `b2`.
//
// Biases only with `bias: true`. All products are in Scalar, whatever the precision of training.
class Projection {
 public:
  // Of a parameter's name: whether its rows are those of hidden units. Those of the other matrices are of
  // experts.
  static bool has_hidden_rows(std::string_view name) {
    return name == "proj" || name == "w1" || name == "b1";
  }

  Projection(const ProjectionOptions& options, const RouterShape& shape, bool trainable = true);

  // The router's input: with jitter, in training, x times numbers from U[1 - j, 1 + j] (Switch Transformers,
  // section 2.4). (N, d_model)
  Variable input(const Variable& x, const ForwardContext& context) const;
  // (N, d_model) -> (N, E), before noise and temperature.
  Variable logits(const Variable& input, const ForwardContext& context);
  // z = (clean + noise) / temperature, plus the probe's offset. `noise` may be undefined.
  Variable finish(const Variable& clean, const Variable& noise, const RouterProbe& probe) const;

  // Declares the parameters and products in the router's own visit().
  void visit(Visitor& visitor);

 private:
  ProjectionOptions options_;
  RouterShape shape_;
  std::optional<Parameter> weight_, bias_;       // linear
  std::optional<Parameter> proj_, embed_, tau_;  // cosine
  std::optional<Parameter> w1_, w2_, b1_, b2_;   // mlp
};

}  // namespace moelab::moe
