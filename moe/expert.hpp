// An expert maps rows to rows, each row by itself. It is written on the tape (forward()), or, where speed
// matters, as a pass of forward and backward kernels over blocks of rows (begin()). Dispatch runs either;
// both are checked by the same tests.
#pragma once

#include "core/autograd.hpp"
#include "core/context.hpp"
#include "core/fields.hpp"
#include "core/module.hpp"
#include "moe/operand_rows.hpp"

#include <memory>
#include <span>

namespace moelab::moe {

// The rows of a batch that one expert gets.
struct ExpertRows {
  ConstMatrixView x;            // (N, d_model) of the whole batch
  const OperandRows& operands;  // x in the type that products work in, converted once for all experts
  // (n) which row of x each row of the expert is. Random numbers that belong to a token (dropout) are drawn
  // by it, so that they do not depend on how rows are grouped.
  std::span<const Index> tokens;
  const ForwardContext& context;

  Index count() const { return static_cast<Index>(tokens.size()); }
};

// One batch through one expert, in blocks of rows. Blocks may run at the same time, and so may gradient
// pieces.
class ExpertPass {
 public:
  virtual ~ExpertPass() = default;

  // Rows of a block; the last one may be shorter. Depends on shapes alone.
  virtual Index block_rows() const = 0;
  // What comes before the blocks of either direction (packing weights), in pieces that may run at the same
  // time.
  virtual Index num_preparations() const { return 0; }
  virtual void prepare_forward(Index /*piece*/) {}
  virtual void prepare_backward(Index /*piece*/) {}

  // y = f(x) of the rows from `first` on, as many as y has. y: (m, d_model)
  virtual void forward(Index first, Out y) = 0;
  // dx of the rows from `first` on. dy, dx: (m, d_model)
  virtual void backward(Index first, In dy, Out dx) = 0;
  // After all blocks: adds the gradients of the parameters, in pieces that write to different places.
  virtual Index num_gradient_pieces() const { return 0; }
  virtual void add_parameter_gradients(Index /*piece*/) {}
};

// One of the two forms is overridden.
class Expert : public Module {
 public:
  // On the tape. x: (n, d_model) -> (n, d_model), the rows that `rows` names. An expert is never called twice
  // at once, so its parameters have one writer.
  virtual Variable forward(const Variable& x, const ExpertRows& rows);
  // As kernels. What `rows` refers to outlives the pass. By default a pass of one block that runs forward().
  virtual std::unique_ptr<ExpertPass> begin(const ExpertRows& rows);
};

struct ExpertShape {
  Index d_model = 0;
  Index layer = 0;
  Index num_layers = 1;
  Index expert = 0;  // number in the layer, shared experts after the routed ones: names random streams
};

// The options of one kind of expert in an experiment file. See docs/adding-an-expert.md.
class ExpertOptions {
 public:
  virtual ~ExpertOptions() = default;
  virtual void fields(FieldVisitor& v) = 0;
  virtual std::unique_ptr<ExpertOptions> clone() const = 0;
  virtual std::unique_ptr<Expert> make(const ExpertShape& shape) const = 0;
  // Makes the expert `factor` times finer (the `granularity` shorthand). False: it cannot be divided by that.
  virtual bool divide(Index /*factor*/) { return true; }
};

}  // namespace moelab::moe
