// A config struct declares each of its fields once, in `void fields(FieldVisitor& v)`:
//
//   struct OptimizerConfig {
//     std::string kind = "adamw";
//     double lr = 3e-4;
//     std::optional<double> momentum;
//     void fields(FieldVisitor& v) {
//       v.kind(kind, {.help = "Update rule", .choices = {"adamw", "sgd"}});
//       v("lr", lr, {.help = "Peak learning rate", .min = 0, .min_exclusive = true, .required = true});
//       if (kind == "sgd") v("momentum", momentum, {.help = "Momentum", .min = 0, .max = 1});
//       v.check(lr < 10, "lr", "a learning rate of 10 or more cannot be meant");
//     }
//   };
//
// The in-class initialiser is the default. From this one declaration come the strict reader, its error
// messages, the resolved YAML, the JSON Schema and the tables of the documentation.
//
// A double becomes float32 where it is used: what is not 0 must be one of its normal numbers, 1.2e-38
// to 3.4e38, and a bound that is excluded must not be reached by rounding to it (a beta of 0.99999999 is 1).
//
// Members may be bool, Index, double, std::string, another config struct, yaml::Node (anything, kept as it is
// written), and std::optional, std::vector and NamedValues (a mapping from free names) of these, nested at
// will.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace moelab {

namespace yaml {
struct Node;
}

// What is known of a field besides its type and default.
struct FieldInfo {
  std::string help = {};  // one line, without a full stop
  std::string unit = {};  // tokens, steps, ...
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_exclusive = false;
  bool max_exclusive = false;
  // Of a string: the values allowed. Of a mapping from names: the names allowed. Empty: any.
  std::vector<std::string> choices = {};
  // Of a string: it may hold ends of lines and tabs. No string may hold other control characters.
  bool has_lines = false;
  bool required = false;
  // Of a list: a single element may stand without brackets.
  bool one_or_list = false;
  // Of one field of a struct: where the struct is expected, a plain value means this field
  // (`load_balance: 0.01` for `load_balance: {weight: 0.01}`). The kind of a kinded struct always is one.
  bool shorthand = false;
  // Of an optional: what happens when it is absent or null, e.g. "same as factor".
  std::string when_absent = {};
};

// A mapping from free names to values, in the order of the file.
template <class T>
struct NamedValues {
  std::vector<std::pair<std::string, T>> entries;

  const T* find(std::string_view name) const {
    for (const auto& [key, value] : entries) {
      if (key == name) return &value;
    }
    return nullptr;
  }
  bool operator==(const NamedValues&) const = default;
};

class FieldVisitor;
class ValueVisitor;

// A reference to one value of any type that a field can have.
class ValueRef {
 public:
  template <class T>
  static ValueRef to(T& value);
  void accept(ValueVisitor& visitor, const FieldInfo& info) const { accept_(object_, visitor, info); }

 private:
  using Accept = void (*)(void*, ValueVisitor&, const FieldInfo&);
  ValueRef(void* object, Accept accept_as) : object_(object), accept_(accept_as) {}
  void* object_;
  Accept accept_;
};

// Views of the composed types, for visitors. A prototype is a default-made element.
class OptionalRef {
 public:
  virtual ~OptionalRef() = default;
  virtual bool has_value() const = 0;
  virtual void clear() = 0;
  virtual ValueRef value() = 0;  // made by default when absent
  virtual ValueRef prototype() = 0;
};

class ListRef {
 public:
  virtual ~ListRef() = default;
  virtual std::size_t size() const = 0;
  virtual void resize(std::size_t size) = 0;
  virtual ValueRef element(std::size_t i) = 0;
  virtual ValueRef prototype() = 0;
};

class NamedRef {
 public:
  virtual ~NamedRef() = default;
  virtual std::size_t size() const = 0;
  virtual void clear() = 0;
  virtual const std::string& name(std::size_t i) const = 0;
  virtual ValueRef element(std::size_t i) = 0;
  virtual ValueRef add(const std::string& name) = 0;
  virtual ValueRef prototype() = 0;
};

class StructRef {
 public:
  virtual ~StructRef() = default;
  virtual void fields(FieldVisitor& visitor) = 0;
};

// Sees one value, by its type.
class ValueVisitor {
 public:
  virtual ~ValueVisitor() = default;
  virtual void boolean(bool& value, const FieldInfo& info) = 0;
  virtual void integer(std::int64_t& value, const FieldInfo& info) = 0;
  virtual void number(double& value, const FieldInfo& info) = 0;
  virtual void text(std::string& value, const FieldInfo& info) = 0;
  virtual void node(yaml::Node& value, const FieldInfo& info) = 0;
  virtual void optional(OptionalRef& value, const FieldInfo& info) = 0;
  virtual void list(ListRef& value, const FieldInfo& info) = 0;
  virtual void named(NamedRef& value, const FieldInfo& info) = 0;
  virtual void structure(StructRef& value, const FieldInfo& info) = 0;
};

// Sees the fields of one struct, in order.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  template <class T>
  void operator()(std::string_view name, T& member, const FieldInfo& info) {
    on_field(name, ValueRef::to(member), info);
  }

  // The field `kind`, on which the fields declared after it may depend: fields() is then called for every
  // choice by visitors that describe, and for the chosen one by visitors that read or write. Declare it
  // first. `info.choices` must list the kinds. Where kinds are plugged in through a registry, the struct gets
  // the options of the chosen kind from there and forwards: `v.kind(kind, ...); options_for(kind).fields(v);`
  void kind(std::string& member, const FieldInfo& info) { on_kind(member, info); }

  // A condition over several fields, declared after them. `path` names the field to blame, relative to this
  // struct ("router.top_k"). Checked by the reader, and only if no field of the struct was in error.
  void check(bool holds, std::string_view path, std::string_view message) {
    if (!holds) on_violation(path, message);
  }

 protected:
  virtual void on_field(std::string_view name, const ValueRef& value, const FieldInfo& info) = 0;
  virtual void on_kind(std::string& member, const FieldInfo& info) = 0;
  virtual void on_violation(std::string_view /*path*/, std::string_view /*message*/) {}
};

namespace detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsNamed : std::false_type {};
template <class T>
struct IsNamed<NamedValues<T>> : std::true_type {};

template <class T>
class OptionalView final : public OptionalRef {
 public:
  explicit OptionalView(std::optional<T>& value) : value_(value) {}
  bool has_value() const override { return value_.has_value(); }
  void clear() override { value_.reset(); }
  ValueRef value() override {
    if (!value_) value_.emplace();
    return ValueRef::to(*value_);
  }
  ValueRef prototype() override { return ValueRef::to(prototype_); }

 private:
  std::optional<T>& value_;
  T prototype_{};
};

template <class T>
class ListView final : public ListRef {
 public:
  explicit ListView(std::vector<T>& values) : values_(values) {}
  std::size_t size() const override { return values_.size(); }
  void resize(std::size_t size) override { values_.resize(size); }
  ValueRef element(std::size_t i) override { return ValueRef::to(values_[i]); }
  ValueRef prototype() override { return ValueRef::to(prototype_); }

 private:
  std::vector<T>& values_;
  T prototype_{};
};

template <class T>
class NamedView final : public NamedRef {
 public:
  explicit NamedView(NamedValues<T>& values) : values_(values) {}
  std::size_t size() const override { return values_.entries.size(); }
  void clear() override { values_.entries.clear(); }
  const std::string& name(std::size_t i) const override { return values_.entries[i].first; }
  ValueRef element(std::size_t i) override { return ValueRef::to(values_.entries[i].second); }
  ValueRef add(const std::string& name) override {
    return ValueRef::to(values_.entries.emplace_back(name, T{}).second);
  }
  ValueRef prototype() override { return ValueRef::to(prototype_); }

 private:
  NamedValues<T>& values_;
  T prototype_{};
};

template <class T>
class StructView final : public StructRef {
 public:
  explicit StructView(T& value) : value_(value) {}
  void fields(FieldVisitor& visitor) override { value_.fields(visitor); }

 private:
  T& value_;
};

template <class T>
void accept(void* object, ValueVisitor& visitor, const FieldInfo& info) {
  T& value = *static_cast<T*>(object);
  if constexpr (std::is_same_v<T, bool>) {
    visitor.boolean(value, info);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    visitor.integer(value, info);
  } else if constexpr (std::is_same_v<T, double>) {
    visitor.number(value, info);
  } else if constexpr (std::is_same_v<T, std::string>) {
    visitor.text(value, info);
  } else if constexpr (std::is_same_v<T, yaml::Node>) {
    visitor.node(value, info);
  } else if constexpr (IsOptional<T>::value) {
    OptionalView view(value);
    visitor.optional(view, info);
  } else if constexpr (IsVector<T>::value) {
    ListView view(value);
    visitor.list(view, info);
  } else if constexpr (IsNamed<T>::value) {
    NamedView view(value);
    visitor.named(view, info);
  } else {
    StructView<T> view(value);
    visitor.structure(view, info);
  }
}

}  // namespace detail

template <class T>
ValueRef ValueRef::to(T& value) {
  return {&value, &detail::accept<T>};
}

}  // namespace moelab
