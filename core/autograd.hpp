// A small tape. An operation computes its value at once and, when a gradient is wanted, leaves a closure that
// adds to the gradients of its inputs. Graphs are owned by the Variables that refer to them; there is no
// global tape, so tasks may record independent graphs at the same time. A graph of any depth is followed and
// freed without recursion.
#pragma once

#include "core/tensor.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace moelab {

class Parameter;

class Variable {
 public:
  // Called once by backward() with the operation's value and its gradient.
  using Backward = std::function<void(const Matrix& y, const Matrix& dy)>;

  Variable() = default;
  // A leaf. With requires_grad its gradient is kept and can be read after backward().
  explicit Variable(Matrix value, bool requires_grad = false);
  // A leaf that stands for a parameter: value and gradient are the parameter's own storage. With record =
  // false it is a constant (evaluation).
  Variable(Parameter& parameter, bool record);

  // The result of an operation on `inputs`. Where no input requires a gradient the closure is dropped. The
  // closure adds to its inputs' gradients with add_grad() or grad(), after asking requires_grad().
  static Variable result(Matrix value, std::vector<Variable> inputs, Backward backward);

  bool defined() const { return node_ != nullptr; }
  bool requires_grad() const;
  ConstMatrixView value() const;
  Index rows() const;
  Index cols() const;
  // The only entry of a (1, 1) variable.
  Scalar item() const;
  // The parameter that this leaf stands for, or null. Lets products use the parameter's packed form.
  Parameter* parameter() const;

  // The gradient, zero-filled on first use. Of a parameter: its storage, never cleared here.
  MatrixView grad() const;
  // grad += g. The first addition takes g's storage over instead of adding to zeros.
  void add_grad(Matrix g) const;

  // The same value as a constant: no gradient flows through.
  Variable detach() const;

  struct Node;

 private:
  friend void backward(const Variable& root, Matrix seed);
  std::shared_ptr<Node> node_;
};

// Propagates from a (1, 1) root with gradient 1. Frees the closures and inner gradients on the way, so a
// graph can be followed once: Error where it, or a part that another root shares, was followed before.
// Gradients of leaves accumulate.
void backward(const Variable& root);
// The same from any root with its gradient given, of the root's shape.
void backward(const Variable& root, Matrix seed);

}  // namespace moelab
