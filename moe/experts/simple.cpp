#include "moe/experts/simple.hpp"

#include "core/ops/elementwise.hpp"
#include "core/ops/matmul.hpp"
#include "core/ops/shape.hpp"
#include "core/ops/softmax.hpp"

namespace moelab::moe {

namespace {

class ZeroExpert final : public Expert {
 public:
  void visit(Visitor& /*visitor*/) override {}
  Variable forward(const Variable& x, const ExpertRows& /*rows*/) override {
    return Variable(Matrix::Zero(x.rows(), x.cols()));
  }
};

class CopyExpert final : public Expert {
 public:
  void visit(Visitor& /*visitor*/) override {}
  Variable forward(const Variable& x, const ExpertRows& /*rows*/) override { return x; }
};

class ConstantExpert final : public Expert {
 public:
  explicit ConstantExpert(Index d_model)
      : wc_(2, d_model, Init::normal(0.02)), v_(1, d_model, Init::normal(0.02)) {}

  void visit(Visitor& visitor) override {
    visitor.parameter("wc", wc_);
    visitor.product("wc", {{}, wc_.rows(), wc_.cols()});
    visitor.parameter("v", v_);
  }

  Variable forward(const Variable& x, const ExpertRows& rows) override {
    const bool record = rows.context.record;
    const Variable a = ops::row_softmax(ops::matmul_transposed(x, Variable(wc_, record)));  // (n, 2)
    return ops::add(ops::multiply(ops::slice_columns(a, 0, 1), x),
                    ops::matmul(ops::slice_columns(a, 1, 1), Variable(v_, record)));
  }

 private:
  Parameter wc_, v_;
};

}  // namespace

std::unique_ptr<Expert> ZeroExpertOptions::make(const ExpertShape& /*shape*/) const {
  return std::make_unique<ZeroExpert>();
}
std::unique_ptr<Expert> CopyExpertOptions::make(const ExpertShape& /*shape*/) const {
  return std::make_unique<CopyExpert>();
}
std::unique_ptr<Expert> ConstantExpertOptions::make(const ExpertShape& shape) const {
  return std::make_unique<ConstantExpert>(shape.d_model);
}

}  // namespace moelab::moe
