// Experts that cost (almost) nothing: zero, copy, constant (MoE++, Jin et al. 2024, section 3.1). On the
// tape.
#pragma once

#include "moe/expert.hpp"

namespace moelab::moe {

// f(x) = 0.
class ZeroExpertOptions : public ExpertOptions {
 public:
  void fields(FieldVisitor& /*v*/) override {}
  std::unique_ptr<ExpertOptions> clone() const override { return std::make_unique<ZeroExpertOptions>(*this); }
  std::unique_ptr<Expert> make(const ExpertShape& shape) const override;
};

// f(x) = x.
class CopyExpertOptions : public ExpertOptions {
 public:
  void fields(FieldVisitor& /*v*/) override {}
  std::unique_ptr<ExpertOptions> clone() const override { return std::make_unique<CopyExpertOptions>(*this); }
  std::unique_ptr<Expert> make(const ExpertShape& shape) const override;
};

// f(x) = a1 x + a2 v, (a1, a2) = softmax(Wc x). Parameters wc (2, d_model) and v (1, d_model).
class ConstantExpertOptions : public ExpertOptions {
 public:
  void fields(FieldVisitor& /*v*/) override {}
  std::unique_ptr<ExpertOptions> clone() const override {
    return std::make_unique<ConstantExpertOptions>(*this);
  }
  std::unique_ptr<Expert> make(const ExpertShape& shape) const override;
};

}  // namespace moelab::moe
