// Kinds of a part (routers, experts): a table from name to options, and a config value that holds one of
// them.
#pragma once

#include "core/error.hpp"
#include "core/fields.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moelab::moe {

// One kind. `Options` has fields(), clone() and make().
template <class Options>
struct Kind {
  std::string name;
  std::string help;    // one line
  std::string source;  // paper and equation, or where the idea is from
  std::function<std::unique_ptr<Options>()> default_options;
};

// The kinds of one part, in the order they were added. Fill it before other threads start.
template <class Options>
class KindTable {
 public:
  KindTable(std::string part, std::vector<Kind<Options>> kinds)
      : part_(std::move(part)), kinds_(std::move(kinds)) {}

  const std::vector<Kind<Options>>& all() const { return kinds_; }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const Kind<Options>& kind : kinds_) result.push_back(kind.name);
    return result;
  }
  bool contains(std::string_view name) const { return search(name) != nullptr; }

  // Error that lists the known names when there is no such kind.
  const Kind<Options>& find(std::string_view name) const {
    if (const Kind<Options>* kind = search(name)) return *kind;
    throw ConfigError(
        fmt::format("[moe] unknown {} kind '{}'; known: {}", part_, name, fmt::join(names(), ", ")));
  }

  // For code outside the tree, called at the start of main(). Error when the name is taken.
  void add(Kind<Options> kind) {
    require(!contains(kind.name), "[moe] {} kind '{}' is registered already", part_, kind.name);
    kinds_.push_back(std::move(kind));
  }

 private:
  const Kind<Options>* search(std::string_view name) const {
    for (const Kind<Options>& kind : kinds_) {
      if (kind.name == name) return &kind;
    }
    return nullptr;
  }

  std::string part_;
  std::vector<Kind<Options>> kinds_;
};

// A kind and its options, as a value: copies are independent.
template <class Options>
class Kinded {
 public:
  Kinded(const KindTable<Options>& table, const std::string& kind) : table_(&table) { set_kind(kind); }
  Kinded(const Kinded& other) : table_(other.table_), kind_(other.kind_), options_(other.options_->clone()) {}
  Kinded& operator=(const Kinded& other) {
    if (this != &other) *this = Kinded(other);
    return *this;
  }
  Kinded(Kinded&&) noexcept = default;
  Kinded& operator=(Kinded&&) noexcept = default;
  ~Kinded() = default;

  const std::string& kind() const { return kind_; }
  // Changes the kind and sets all its options to their defaults.
  void set_kind(const std::string& kind) {
    options_ = table_->find(kind).default_options();
    kind_ = kind;
  }

  Options& options() { return *options_; }
  const Options& options() const { return *options_; }
  // The options as the struct that the kind brings: as<TopKOptions>().top_k = 2.
  template <class T>
  T& as() {
    T* options = dynamic_cast<T*>(options_.get());
    require(options != nullptr, "[moe] options of kind '{}' asked for as another kind's", kind_);
    return *options;
  }

  // Declares the field `kind`; afterwards options() are those of the kind that was read.
  void kind_field(FieldVisitor& v, const std::string& help) {
    std::string kind = kind_;
    v.kind(kind, {.help = help, .choices = table_->names()});
    if (kind != kind_ && table_->contains(kind)) set_kind(kind);
  }

 private:
  const KindTable<Options>* table_;
  std::string kind_;
  std::unique_ptr<Options> options_;
};

}  // namespace moelab::moe
