#include "core/autograd.hpp"

#include "core/error.hpp"
#include "core/module.hpp"
#include "core/parallel.hpp"

#include <iterator>
#include <unordered_set>

namespace moelab {

struct Variable::Node {
  Matrix value;
  Matrix grad;  // empty until something is added
  bool requires_grad = false;
  bool is_followed = false;  // its gradient has gone to its inputs
  Parameter* parameter = nullptr;
  std::vector<Variable> inputs;
  Backward backward;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();
};

// Frees what only this node keeps alive in a loop: destructors that call each other would need a stack as
// deep as the graph. A closure refers to nothing but its node's inputs, so it goes before them.
Variable::Node::~Node() {
  backward = nullptr;
  std::vector<Variable> pending = std::move(inputs);
  while (!pending.empty()) {
    const std::shared_ptr<Node> node = std::move(pending.back().node_);
    pending.pop_back();
    if (node.use_count() != 1) continue;
    node->backward = nullptr;
    pending.insert(pending.end(), std::make_move_iterator(node->inputs.begin()),
                   std::make_move_iterator(node->inputs.end()));
    node->inputs.clear();
  }
}

Variable::Variable(Matrix value, bool requires_grad) : node_(std::make_shared<Node>()) {
  node_->value = std::move(value);
  node_->requires_grad = requires_grad;
}

Variable::Variable(Parameter& parameter, bool record) : node_(std::make_shared<Node>()) {
  node_->parameter = &parameter;
  node_->requires_grad = record && parameter.trainable;
}

Variable Variable::result(Matrix value, std::vector<Variable> inputs, Backward backward) {
  Variable y(std::move(value));
  for (const Variable& x : inputs) y.node_->requires_grad = y.node_->requires_grad || x.requires_grad();
  if (y.node_->requires_grad) {
    y.node_->inputs = std::move(inputs);
    y.node_->backward = std::move(backward);
  }
  return y;
}

bool Variable::requires_grad() const { return node_ && node_->requires_grad; }

ConstMatrixView Variable::value() const {
  if (node_->parameter) {
    const MatrixView v = node_->parameter->value();
    return {v.data(), v.rows(), v.cols()};
  }
  return {node_->value.data(), node_->value.rows(), node_->value.cols()};
}

Index Variable::rows() const { return node_->parameter ? node_->parameter->rows() : node_->value.rows(); }
Index Variable::cols() const { return node_->parameter ? node_->parameter->cols() : node_->value.cols(); }

Scalar Variable::item() const {
  require(rows() == 1 && cols() == 1, "[autograd] item() of a ({}, {}) variable", rows(), cols());
  return value()(0, 0);
}

Parameter* Variable::parameter() const { return node_->parameter; }

MatrixView Variable::grad() const {
  if (node_->parameter) return node_->parameter->grad();
  if (node_->grad.size() == 0) node_->grad.setZero(rows(), cols());
  return {node_->grad.data(), rows(), cols()};
}

void Variable::add_grad(Matrix g) const {
  require(g.rows() == rows() && g.cols() == cols(), "[autograd] gradient ({}, {}) of a ({}, {}) variable",
          g.rows(), g.cols(), rows(), cols());
  if (!node_->parameter && node_->grad.size() == 0) {
    node_->grad = std::move(g);
  } else {
    constexpr Index kBlock = Index{1} << 14;
    MatrixView sum = grad();
    parallel::for_blocks(g.size(), kBlock, [&](Index begin, Index end) {
      Eigen::Map<Eigen::ArrayX<Scalar>>(sum.data() + begin, end - begin) +=
          Eigen::Map<const Eigen::ArrayX<Scalar>>(g.data() + begin, end - begin);
    });
  }
}

Variable Variable::detach() const { return Variable(Matrix(value())); }

void backward(const Variable& root) {
  require(root.rows() == 1 && root.cols() == 1,
          "[autograd] backward() from a ({}, {}) variable needs its gradient", root.rows(), root.cols());
  backward(root, Matrix::Ones(1, 1));
}

void backward(const Variable& root, Matrix seed) {
  if (!root.requires_grad()) return;
  // Depth-first post-order: an operation comes after everything it depends on. `order` shares ownership, so
  // that a node lives until its turn and is freed right after it.
  std::vector<std::shared_ptr<Variable::Node>> order;
  std::unordered_set<Variable::Node*> seen{root.node_.get()};
  std::vector<std::pair<std::shared_ptr<Variable::Node>, std::size_t>> stack{{root.node_, 0}};
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    require(!node->is_followed,
            "[autograd] backward() came to an operation a second time; add what shares it first");
    if (next == node->inputs.size()) {
      order.push_back(std::move(node));
      stack.pop_back();
      continue;
    }
    const std::shared_ptr<Variable::Node> input = node->inputs[next++].node_;
    if (input && input->requires_grad && seen.insert(input.get()).second) stack.emplace_back(input, 0);
  }

  root.add_grad(std::move(seed));
  for (; !order.empty(); order.pop_back()) {
    Variable::Node& node = *order.back();
    if (!node.backward) continue;  // a leaf
    // Without a gradient nothing flowed here. (A value without entries never has one, and passes on nothing.)
    if (node.grad.size() > 0) node.backward(node.value, node.grad);
    node.is_followed = true;
    node.backward = nullptr;
    node.grad.resize(0, 0);
    node.inputs.clear();
  }
}

}  // namespace moelab
