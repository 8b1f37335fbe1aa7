#include "experiments/bench/products.hpp"

#include "core/gemm_serial.hpp"
#include "core/parallel.hpp"
#include "core/random.hpp"
#include "experiments/bench/timing.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moelab::bench {

namespace {

constexpr Index kBlockRows = 128;
constexpr Index kGradientRows = 256;  // rows of a weight's gradient that are one task
constexpr Index kChunkRows = 512;     // rows that one product adds to a gradient

// A matrix that is kept in Scalar and, where products work in it, in bfloat16.
class TypedMatrix {
 public:
  TypedMatrix(Index rows, Index cols, gemm::Precision precision) : values_(rows, cols) {
    random::fill_normal(values_, random::Stream(0, "bench/operand"), 1);
    if (!gemm::uses_bfloat16(precision)) return;
    half_.resize(static_cast<std::size_t>(values_.size()));
    to_bfloat16(values_.data(), half_.data(), values_.size());
  }
  // The first rows, and a run of their columns.
  gemm::Operand block(Index rows, Index first_col, Index cols) const {
    if (half_.empty()) return {values_.data() + first_col, rows, cols, values_.cols()};
    return {half_.data() + first_col, rows, cols, values_.cols()};
  }
  gemm::Operand block(Index rows) const { return block(rows, 0, values_.cols()); }

 private:
  Matrix values_;
  std::vector<Bfloat16> half_;
};

struct OneWeight : Module {
  OneWeight(Index out, Index in) : w(out, in, Init::normal(0.02)) {}
  Parameter w;
  void visit(Visitor& visitor) override { visitor.parameter("w", w); }
};

}  // namespace

// Gate and up stacked, and down, of every expert.
struct LayerProducts::Weights : Module {
  struct Expert {
    Expert(Index d_model, Index d_ff)
        : gate_up(2 * d_ff, d_model, Init::normal(0.02)), down(d_model, d_ff, Init::normal(0.02)) {}
    Parameter gate_up, down;
  };
  explicit Weights(const LayerShape& shape) {
    for (Index e = 0; e < shape.num_experts; ++e) {
      experts.push_back(std::make_unique<Expert>(shape.d_model, shape.d_ff));
    }
    store = std::make_unique<ParameterStore>(*this, 0);
  }
  void visit(Visitor& visitor) override {
    for (std::size_t e = 0; e < experts.size(); ++e) {
      visitor.parameter(fmt::format("{}.gate_up", e), experts[e]->gate_up);
      visitor.parameter(fmt::format("{}.down", e), experts[e]->down);
    }
  }
  std::vector<std::unique_ptr<Expert>> experts;
  std::unique_ptr<ParameterStore> store;
};

struct LayerProducts::Operands {
  Operands(const LayerShape& shape, Index rows, gemm::Precision precision)
      : x(rows, shape.d_model, precision),
        hidden(rows, shape.d_ff, precision),
        dpre(rows, 2 * shape.d_ff, precision),
        dy(rows, shape.d_model, precision) {}
  TypedMatrix x;       // (n, d_model)
  TypedMatrix hidden;  // (n, d_ff)
  TypedMatrix dpre;    // (n, 2 d_ff)
  TypedMatrix dy;      // (n, d_model)
};

LayerProducts::LayerProducts(const LayerShape& shape, gemm::Precision precision,
                             std::vector<Index> rows_of_experts)
    : shape_(shape),
      rows_(std::move(rows_of_experts)),
      weights_(std::make_unique<Weights>(shape)),
      operands_(std::make_unique<Operands>(
          shape, gemm::serial::padded_rows(*std::max_element(rows_.begin(), rows_.end())), precision)) {
  for (std::size_t e = 0; e < rows_.size(); ++e) {
    for (Index r = 0; r < rows_[e]; r += kBlockRows) {
      const Index rows = std::min(kBlockRows, rows_[e] - r);
      blocks_.push_back({e, rows, gemm::serial::padded_rows(rows)});
    }
  }
}

LayerProducts::~LayerProducts() = default;

void LayerProducts::forward() {
  parallel::for_each(static_cast<Index>(blocks_.size()), [&](Index i) {
    const Block& block = blocks_[static_cast<std::size_t>(i)];
    const Weights::Expert& expert = *weights_->experts[block.expert];
    thread_local Matrix pre, y;
    pre.resize(block.padded, 2 * shape_.d_ff);
    y.resize(block.padded, shape_.d_model);
    gemm::serial::forward(operands_->x.block(block.padded), expert.gate_up.packed(), pre, false, block.rows);
    gemm::serial::forward(operands_->hidden.block(block.padded), expert.down.packed(), y, false, block.rows);
  });
}

void LayerProducts::backward() {
  parallel::for_each(static_cast<Index>(blocks_.size()), [&](Index i) {
    const Block& block = blocks_[static_cast<std::size_t>(i)];
    const Weights::Expert& expert = *weights_->experts[block.expert];
    thread_local Matrix dhidden, dx;
    dhidden.resize(block.padded, shape_.d_ff);
    dx.resize(block.padded, shape_.d_model);
    gemm::serial::backward_input(operands_->dy.block(block.padded), expert.down.packed(), dhidden, false,
                                 block.rows);
    gemm::serial::backward_input(operands_->dpre.block(block.padded), expert.gate_up.packed(), dx, false,
                                 block.rows);
  });
  struct Piece {
    std::size_t expert;
    bool is_down;
    Index first, count;  // rows of the gradient
  };
  std::vector<Piece> pieces;
  for (std::size_t e = 0; e < rows_.size(); ++e) {
    if (rows_[e] == 0) continue;
    for (const bool is_down : {false, true}) {
      const Index out = is_down ? shape_.d_model : 2 * shape_.d_ff;
      for (Index r = 0; r < out; r += kGradientRows) {
        pieces.push_back({e, is_down, r, std::min(kGradientRows, out - r)});
      }
    }
  }
  parallel::for_each(static_cast<Index>(pieces.size()), [&](Index i) {
    const Piece& piece = pieces[static_cast<std::size_t>(i)];
    const Index n = rows_[piece.expert];
    Weights::Expert& expert = *weights_->experts[piece.expert];
    const TypedMatrix& inputs = piece.is_down ? operands_->hidden : operands_->x;
    const TypedMatrix& doutputs = piece.is_down ? operands_->dy : operands_->dpre;
    MatrixView dw = (piece.is_down ? expert.down : expert.gate_up).grad();
    // Each chunk reads the same rows, which stay in cache; the first sets the gradient, as in a training
    // step.
    for (Index r = 0; r < n; r += kChunkRows) {
      const Index rows = std::min(kChunkRows, n - r);
      const Index padded = gemm::serial::padded_rows(rows);
      gemm::serial::backward_weight(doutputs.block(padded, piece.first, piece.count), inputs.block(padded),
                                    dw.middleRows(piece.first, piece.count), r > 0, rows);
    }
  });
}

void LayerProducts::forward_backward() {
  forward();
  backward();
}

double block_gflops(Index rows, Index out, Index in, gemm::Precision precision) {
  OneWeight module(out, in);
  const ParameterStore store(module, 0);
  const TypedMatrix x(rows, in, precision);
  Matrix y(rows, out);
  // Many products in one timing, since one may take only microseconds.
  const double flops = 2.0 * static_cast<double>(rows * out * in);
  const int batch = std::max(1, static_cast<int>(1e8 / flops));
  const Timing timing = measure({.warmup = 1, .least = 5, .seconds = 0.05}, [&] {
    for (int i = 0; i < batch; ++i) gemm::serial::forward(x.block(rows), module.w.packed(), y);
  });
  return flops * batch / timing.median / 1e9;
}

}  // namespace moelab::bench
