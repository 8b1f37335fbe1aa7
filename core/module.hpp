// Parameters and the tree of modules. A parameter is declared once, in its module's visit(): from that come
// its checkpoint name, its optimizer state, its row in the accounting, counting, clipping, saving and
// hashing.
#pragma once

#include "core/tensor.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moelab {

namespace gemm {
class PackedWeight;
}

// How a parameter starts.
struct Init {
  enum class Kind { normal, constant } kind = Kind::normal;
  double value = 0.02;  // standard deviation, or the constant
  static Init normal(double std) { return {Kind::normal, std}; }
  static Init constant(double value) { return {Kind::constant, value}; }
};

// A trained matrix (vectors have one row). Made with a shape only: a model can be counted without memory.
// Storage is given by ParameterStore, one flat buffer for a whole model.
class Parameter {
 public:
  Parameter(Index rows, Index cols, Init init);
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;
  Parameter(Parameter&&) noexcept;
  Parameter& operator=(Parameter&&) noexcept;
  ~Parameter();

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index size() const { return rows_ * cols_; }
  const Init& init() const { return init_; }
  bool allocated() const { return value_ != nullptr; }
  // Error if storage was not given yet.
  MatrixView value() const;
  // Written with zeros first if it was cleared and nothing was added since. Tasks that run at the same time
  // may only share a gradient that was asked for before they start.
  MatrixView grad() const;
  // Whether the gradient was cleared and nothing was added since. If so, the caller takes it over and must
  // set every value of grad() instead of adding to it; this saves clearing and reading it.
  bool take_cleared_grad() const { return std::exchange(grad_is_cleared_, false); }
  // Goes up whenever the value changes, so that packed copies know when they are stale.
  std::uint64_t version() const { return version_; }
  void mark_changed() { ++version_; }
  // The value as operand of matrix products. Error if storage was not given yet.
  const gemm::PackedWeight& packed() const;
  // Matrices are decayed, vectors (norms, biases, gates) are not.
  bool decayed() const { return rows_ > 1; }
  // A parameter that is not trained (the frozen router) keeps its value and has no gradient.
  bool trainable = true;

 private:
  friend class ParameterStore;
  Index rows_, cols_;
  Init init_;
  Scalar* value_ = nullptr;
  Scalar* grad_ = nullptr;
  mutable bool grad_is_cleared_ = false;  // stands for zeros, whatever is in memory
  std::uint64_t version_ = 1;
  std::unique_ptr<gemm::PackedWeight> packed_;
};

// An exact share: `chosen` of `total`, e.g. top_k of num_experts.
struct Share {
  Index chosen = 1;
  Index total = 1;
};

// A product that a module executes, for the accounting: `rows_per_token` rows of (in) times (out, in). An
// expert's products say one row a token; the layer that runs it on a share of the tokens scales them by the
// `active` share of Visitor::module.
struct ProductCount {
  Share rows_per_token = {};
  Index out = 0;
  Index in = 0;
};

class Module;

// Walks a module tree. The path of a thing is the names of the modules it lies in and its own, joined with
// dots. A thing with an empty name has the path of its module.
class Visitor {
 public:
  // `context`: positions of the sequences that the accounting is about. Matters where work is shared out over
  // a sequence (expert choice, Soft MoE); a walk that only looks at parameters leaves it.
  explicit Visitor(Index context = 1) : context_(context) {}
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;
  virtual ~Visitor() = default;

  Index context() const { return context_; }

  // A trained parameter.
  void parameter(std::string_view name, Parameter& p);
  // State that is kept in checkpoints but not trained by gradient: expert biases, adaptive loss weights.
  void state(std::string_view name, Matrix& m);
  // A matrix product executed on every forward pass.
  void product(std::string_view name, const ProductCount& p);
  // Attention scores and values of one token: 2 * 2 * context * width FLOPs over the full square, with
  // width = num_heads * d_head. `kv_width` = num_kv_heads * d_head is what a cache keeps of keys and of
  // values.
  void attention(Index width, Index kv_width, bool causal);
  // A part; without a name it is a part of the same path. `group` is its row in the accounting (embedding,
  // attention, router, experts, shared_experts, dense_ffn, norm, head); empty: the group of the module around
  // it. `active` is the share of tokens that reach it, e.g. {top_k, num_experts}.
  void module(std::string_view name, Module& m, std::string_view group = {}, Share active = {});

 protected:
  virtual void on_parameter(const std::string& /*path*/, Parameter&) {}
  virtual void on_state(const std::string& /*path*/, Matrix&) {}
  virtual void on_product(const std::string& /*path*/, const ProductCount&) {}
  virtual void on_attention(const std::string& /*path*/, Index /*width*/, Index /*kv_width*/,
                            bool /*causal*/) {}
  const std::string& group() const { return group_; }
  // Product of the `active` shares from the root down to here, in lowest terms.
  Share active() const { return active_; }

 private:
  std::string path_of(std::string_view name) const;
  std::string path_;
  std::string group_;
  Share active_;
  Index context_;
};

class Module {
 public:
  virtual ~Module() = default;
  // Declares parameters, state, products and parts, always in the same order.
  virtual void visit(Visitor& visitor) = 0;
};

struct NamedParameter {
  std::string path;
  Parameter* parameter;
};
// All parameters in visiting order.
std::vector<NamedParameter> parameters(Module& module);

struct NamedState {
  std::string path;
  Matrix* state;
};
std::vector<NamedState> states(Module& module);

// Parameters of the module, counted without allocating any.
std::int64_t count_parameters(Module& module);

// Owns values and gradients of all parameters of a module in two flat, 64-byte aligned buffers, each
// parameter starting at a multiple of 64 bytes (the gaps hold zeros).
class ParameterStore {
 public:
  // Allocates, and initialises each parameter from the stream "init/<path>" of the seed.
  ParameterStore(Module& module, std::uint64_t seed);
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;
  ~ParameterStore();

  MatrixView values() { return {values_, 1, size_}; }
  MatrixView grads();
  // Marks all gradients as cleared; memory is written when they are used.
  void zero_grads();
  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  // Where a parameter starts in the flat buffers.
  Index offset(std::size_t i) const { return offsets_[i]; }
  Index size() const { return size_; }

 private:
  std::vector<NamedParameter> parameters_;
  std::vector<Index> offsets_;
  Index size_ = 0;
  Scalar* values_ = nullptr;
  Scalar* grads_ = nullptr;
};

}  // namespace moelab
