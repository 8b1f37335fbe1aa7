// Options of the FFN, as the dense block, as an expert and as a shared expert.
#pragma once

#include "moe/expert.hpp"

#include <memory>
#include <string>

namespace moelab::moe {

// FFN: W2 act(W1 x + b1) + b2; gated: W2 (act(W1 x + b1) * (W3 x + b3)) + b2 (Shazeer 2020, "GLU Variants").
class FfnExpertOptions : public ExpertOptions {
 public:
  std::string activation;
  Index d_ff = 0;
  bool bias = false;
  double dropout = 0;
  std::string dropout_position = "activation";  // activation | output

  void fields(FieldVisitor& v) override;
  std::unique_ptr<ExpertOptions> clone() const override { return std::make_unique<FfnExpertOptions>(*this); }
  std::unique_ptr<Expert> make(const ExpertShape& shape) const override;
  bool divide(Index factor) override;
};

}  // namespace moelab::moe
