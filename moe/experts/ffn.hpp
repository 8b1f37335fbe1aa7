// The FFN: the dense block, routed experts and shared experts all run this code.
#pragma once

#include "core/gemm_packed.hpp"
#include "core/ops/activation.hpp"
#include "moe/expert.hpp"
#include "moe/experts/ffn_options.hpp"

#include <memory>
#include <optional>
#include <string>

namespace moelab::moe {

// What an FFN consists of. Parameters w1 (d_ff, d_model), w2 (d_model, d_ff), gated also w3 (d_ff, d_model),
// the factor that is not activated; b1, b3 (1, d_ff) and b2 (1, d_model) with `bias`.
struct FfnParts {
  FfnParts(const FfnExpertOptions& options, const ExpertShape& shape);

  ops::Activation activation;
  bool gated;
  Index d_model, d_ff;
  double dropout;
  bool dropout_at_output;
  std::string stream_name;  // of the dropout
  Parameter w1, w2;
  std::optional<Parameter> w3, b1, b2, b3;
  gemm::PackedWeight packed_in;  // w1, or w1 and w3 side by side

  Index inner_cols() const { return gated ? 2 * d_ff : d_ff; }
};

class FfnExpert final : public Expert {
 public:
  FfnExpert(const FfnExpertOptions& options, const ExpertShape& shape) : parts_(options, shape) {}
  void visit(Visitor& visitor) override;
  std::unique_ptr<ExpertPass> begin(const ExpertRows& rows) override;

 private:
  FfnParts parts_;
};

}  // namespace moelab::moe
