// An expert maps rows to rows, each row by itself. It is written on the tape (forward() alone), or, where
// speed matters, also as a forward/backward kernel pair. Dispatch runs either; both are checked by the same
// tests.
#pragma once

#include "core/autograd.hpp"
#include "core/context.hpp"
#include "core/fields.hpp"
#include "core/module.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace moelab::moe {

// What is known of the rows that an expert gets.
struct ExpertRows {
  const ForwardContext& context;
  // (n) which token each row is: numbers that belong to a token (dropout) are drawn by it, so that they do
  // not depend on how rows are grouped.
  std::span<const Index> tokens;
};

// The fast form. Rows arrive in blocks that depend on the shapes alone; calls for different blocks run at the
// same time. Buffers are row-major and may be parts of larger ones.
class ExpertKernel {
 public:
  virtual ~ExpertKernel() = default;

  // Values a row that forward() leaves for the backward pass, and that backward_rows() leaves besides them
  // for add_parameter_gradients().
  virtual Index saved_cols() const = 0;
  virtual Index scratch_cols() const = 0;

  // y = f(x). x, y: (n, d_model); saved: (n, saved_cols()), or without columns when no backward pass follows.
  virtual void forward(In x, Out y, Out saved, const ExpertRows& rows) const = 0;

  // dx of one block, (n, d_model), from dy. May change `saved`, and fills scratch (n, scratch_cols()).
  virtual void backward_rows(In dy, Out saved, Out scratch, Out dx, const ExpertRows& rows) const = 0;

  // Adds the gradients of the parameters, from all rows of the expert with the buffers as backward_rows()
  // left them. The work comes in pieces that write to different places and may run at the same time.
  virtual Index num_gradient_pieces() const = 0;
  virtual void add_parameter_gradients(Index piece, In x, In dy, In saved, In scratch,
                                       const ExpertRows& rows) const = 0;
};

// One of the two forms is overridden.
class Expert : public Module {
 public:
  // On the tape. x: (n, d_model) -> (n, d_model). An expert is never called twice at once, so its parameters
  // have one writer.
  virtual Variable forward(const Variable& x, const ExpertRows& rows);
  // As kernels; null: on the tape.
  virtual const ExpertKernel* kernel() const { return nullptr; }
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
