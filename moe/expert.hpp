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

  // The gradients of one block. dy: (n, d_model) gradient of the token's output, before it is multiplied with
  // the row's combine weight: (n, 1) `weight`. Writes dweight = <dy, f(x)> (n, 1) and dx (n, d_model); leaves
  // in dy, saved and scratch what add_parameter_gradients() reads.
  virtual void backward_rows(In weight, Out dy, Out saved, Out scratch, Out dx, Out dweight,
                             const ExpertRows& rows) const = 0;

  // Adds the gradients of the parameters, from all rows of the expert: (n, .) buffers as backward_rows() left
  // them. The work comes in pieces that write to different places and may run at the same time.
  virtual Index num_gradient_pieces() const = 0;
  virtual void add_parameter_gradients(Index piece, In x, In dy, In saved, In scratch) const = 0;
};

class Expert : public Module {
 public:
  // x: (n, d_model) -> (n, d_model). Each call records its own graph; an expert is never called twice at
  // once.
  virtual Variable forward(const Variable& x, const ExpertRows& rows) const = 0;
  // The same as kernels, or null.
  virtual const ExpertKernel* kernel() const { return nullptr; }
};

struct ExpertShape {
  Index d_model = 0;
  Index layer = 0;
  Index num_layers = 1;
  Index expert = 0;  // number in the layer
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
