#include "core/module.hpp"

#include "core/error.hpp"
#include "core/gemm_packed.hpp"
#include "core/parallel.hpp"
#include "core/random.hpp"

#include <algorithm>
#include <new>
#include <numeric>
#include <set>
#include <tuple>

namespace moelab {

namespace {

constexpr std::align_val_t kAlignment{64};
constexpr Index kAlignedScalars = 64 / static_cast<Index>(sizeof(Scalar));

struct Free {
  void operator()(Scalar* p) const { ::operator delete(p, kAlignment); }
};

std::unique_ptr<Scalar, Free> allocate_zeros(Index size) {
  std::unique_ptr<Scalar, Free> p(
      static_cast<Scalar*>(::operator new(static_cast<std::size_t>(size) * sizeof(Scalar), kAlignment)));
  std::fill_n(p.get(), size, Scalar{0});
  return p;
}

class ParameterCollector : public Visitor {
 public:
  std::vector<NamedParameter> found;

 private:
  void on_parameter(const std::string& path, Parameter& p) override { found.push_back({path, &p}); }
};

class StateCollector : public Visitor {
 public:
  std::vector<NamedState> found;

 private:
  void on_state(const std::string& path, Matrix& m) override { found.push_back({path, &m}); }
};

Share times(Share a, Share b) {
  const Share ab{a.chosen * b.chosen, a.total * b.total};
  const Index common = std::gcd(ab.chosen, ab.total);
  return {ab.chosen / common, ab.total / common};
}

}  // namespace

Parameter::Parameter(Index rows, Index cols, Init init) : rows_(rows), cols_(cols), init_(init) {
  require(rows > 0 && cols > 0, "[parameter] shape ({}, {}) is not positive", rows, cols);
}

Parameter::Parameter(Parameter&&) noexcept = default;
Parameter& Parameter::operator=(Parameter&&) noexcept = default;
Parameter::~Parameter() = default;

const gemm::PackedWeight& Parameter::packed() const {
  require(packed_ != nullptr, "[parameter] a ({}, {}) parameter was used before it was given storage", rows_,
          cols_);
  return *packed_;
}

MatrixView Parameter::value() const {
  require(value_ != nullptr, "[parameter] a ({}, {}) parameter was used before it was given storage", rows_,
          cols_);
  return {value_, rows_, cols_};
}

MatrixView Parameter::grad() const {
  require(grad_ != nullptr, "[parameter] a ({}, {}) parameter was used before it was given storage", rows_,
          cols_);
  // Tasks that share a gradient come here at once: those after the first only look.
  if (grad_is_cleared_ && take_cleared_grad()) std::fill_n(grad_, size(), Scalar{0});
  return {grad_, rows_, cols_};
}

std::string Visitor::path_of(std::string_view name) const {
  if (name.empty()) return path_;
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void Visitor::parameter(std::string_view name, Parameter& p) { on_parameter(path_of(name), p); }
void Visitor::state(std::string_view name, Matrix& m) { on_state(path_of(name), m); }
void Visitor::product(std::string_view name, const ProductCount& p) { on_product(path_of(name), p); }
void Visitor::attention(Index width, Index kv_width, bool causal) {
  on_attention(path_, width, kv_width, causal);
}

void Visitor::module(std::string_view name, Module& m, std::string_view group, Share active) {
  std::string outer_path = path_of(name);
  std::string outer_group = group.empty() ? group_ : std::string(group);
  const Share outer_active = active_;
  outer_path.swap(path_);
  outer_group.swap(group_);
  require(active.chosen >= 0 && active.total > 0, "[visitor] {}: {} of {} is no share", path_, active.chosen,
          active.total);
  active_ = times(active_, active);
  m.visit(*this);
  path_.swap(outer_path);
  group_.swap(outer_group);
  active_ = outer_active;
}

std::vector<NamedParameter> parameters(Module& module) {
  ParameterCollector collector;
  module.visit(collector);
  return std::move(collector.found);
}

std::vector<NamedState> states(Module& module) {
  StateCollector collector;
  module.visit(collector);
  return std::move(collector.found);
}

std::int64_t count_parameters(Module& module) {
  std::int64_t count = 0;
  for (const NamedParameter& p : parameters(module)) count += p.parameter->size();
  return count;
}

ParameterStore::ParameterStore(Module& module, std::uint64_t seed) : parameters_(moelab::parameters(module)) {
  std::set<const Parameter*> declared;
  std::set<std::string> paths;
  for (const NamedParameter& p : parameters_) {
    require(!p.parameter->allocated(), "[parameter] {} is owned by another store", p.path);
    require(declared.insert(p.parameter).second, "[parameter] {} is declared twice", p.path);
    require(paths.insert(p.path).second, "[parameter] two are named {}", p.path);
    offsets_.push_back(size_);
    size_ += (p.parameter->size() + kAlignedScalars - 1) / kAlignedScalars * kAlignedScalars;
  }
  auto values = allocate_zeros(size_);
  grads_ = allocate_zeros(size_).release();
  values_ = values.release();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& p = *parameters_[i].parameter;
    p.value_ = values_ + offsets_[i];
    p.grad_ = grads_ + offsets_[i];
    p.packed_ = std::make_unique<gemm::PackedWeight>(std::vector<const Parameter*>{&p});
    if (p.init().kind == Init::Kind::normal) {
      random::fill_normal(p.value(), random::Stream(seed, "init/" + parameters_[i].path), p.init().value);
    } else {
      p.value().setConstant(static_cast<Scalar>(p.init().value));
    }
    p.mark_changed();
  }
}

ParameterStore::~ParameterStore() {
  for (const NamedParameter& p : parameters_) {
    p.parameter->value_ = nullptr;
    p.parameter->grad_ = nullptr;
    p.parameter->packed_ = nullptr;
  }
  ::operator delete(values_, kAlignment);
  ::operator delete(grads_, kAlignment);
}

MatrixView ParameterStore::grads() {
  parallel::for_each(static_cast<Index>(parameters_.size()), [&](Index i) {
    std::ignore = parameters_[static_cast<std::size_t>(i)].parameter->grad();
  });
  return {grads_, 1, size_};
}

void ParameterStore::zero_grads() {
  for (const NamedParameter& p : parameters_) p.parameter->grad_is_cleared_ = true;
}

}  // namespace moelab
